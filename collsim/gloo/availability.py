"""Whether there is gloo here, and what torch knows."""


def import_torch() -> dict[str, int] | str:
    """Bytes of an element of each of torch's types, or why there can be no gloo."""
    try:
        import torch
        import torch.distributed as dist
    except (ImportError, OSError) as error:  # OSError: one of its libraries does not load
        return str(error)
    if not getattr(dist, "is_gloo_available", bool)():
        return "this torch was built without gloo"
    torch.set_num_threads(1)
    kinds = {name: kind for name, kind in vars(torch).items() if isinstance(kind, torch.dtype)}
    return {name: kind.itemsize for name, kind in kinds.items()}
