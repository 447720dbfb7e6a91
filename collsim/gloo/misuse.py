"""Mistakes in calling torch's collectives: what ranks execute, and what lessons show as code.

Each function is one mistake, made by four ranks, and gives what the rank's tensor holds at its end.
"""

import resource
from typing import Any

from collsim.gloo.progress import Self


def attempt(me: Self, *, mistake: str) -> list[float]:
    """Make a mistake, by its function's name; a rank that aborts leaves no core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    work = {each.__name__: each for each in EVERY}[mistake]
    held: list[float] = work(me).tolist()
    return held


def correct(me: Self) -> Any:
    """No mistake: the broadcast from rank 0 that the others are measured by."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((4,), float(me.rank + 1))
    dist.broadcast(tensor, src=0)
    return tensor


def root_outside(me: Self) -> Any:
    """The root is no rank of the group."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((4,), float(me.rank + 1))
    dist.broadcast(tensor, src=4)
    return tensor


def rank_missing(me: Self) -> Any:
    """Rank 3 never calls."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((4,), float(me.rank + 1))
    if me.rank != 3:
        dist.broadcast(tensor, src=0)
    return tensor


def bigger_receiver(me: Self) -> Any:
    """Rank 3 offers more space than rank 0 sends."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((6 if me.rank == 3 else 4,), float(me.rank + 1))
    dist.broadcast(tensor, src=0)
    return tensor


def smaller_receiver(me: Self) -> Any:
    """Rank 3 offers less space than rank 0 sends."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((2 if me.rank == 3 else 4,), float(me.rank + 1))
    dist.broadcast(tensor, src=0)
    return tensor


def other_type(me: Self) -> Any:
    """Rank 3 takes float32 for int32."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((4,), me.rank + 1, dtype=torch.int32 if me.rank == 3 else torch.float32)
    dist.broadcast(tensor, src=0)
    return tensor


def column(me: Self) -> Any:
    """Everyone hands over a column of a matrix, which is not contiguous."""
    import torch
    import torch.distributed as dist

    matrix = torch.tensor([[1.0, 2.0], [3.0, 4.0]]) * (10 if me.rank == 0 else 1)
    dist.broadcast(matrix[:, 0], src=0)
    return matrix.flatten()


def swapped_order(me: Self) -> Any:
    """Rank 3 makes two broadcasts of equal size in the other order."""
    import torch
    import torch.distributed as dist

    weights = torch.full((2,), 1.0 if me.rank == 0 else 0.0)
    biases = torch.full((2,), 2.0 if me.rank == 0 else 0.0)
    for tensor in (biases, weights) if me.rank == 3 else (weights, biases):
        dist.broadcast(tensor, src=0)
    return torch.cat([weights, biases])


def list_on_every_rank(me: Self) -> Any:
    """Every rank gives a list to scatter, not only the root."""
    import torch
    import torch.distributed as dist

    own = torch.zeros(1)
    blocks = [torch.full((1,), float(rank + 1)) for rank in range(me.n_ranks)]
    dist.scatter(own, blocks, src=0)
    return own


def short_list(me: Self) -> Any:
    """Everyone offers all_gather three places for the blocks of four ranks."""
    import torch
    import torch.distributed as dist

    blocks = [torch.zeros(1) for _ in range(3)]
    dist.all_gather(blocks, torch.full((1,), float(me.rank + 1)))
    return torch.cat(blocks)


def send_before_receive(me: Self) -> Any:
    """Everyone sends to the right, and only then receives from the left."""
    import torch
    import torch.distributed as dist

    mine, theirs = torch.full((1,), float(me.rank + 1)), torch.zeros(1)
    dist.send(mine, dst=(me.rank + 1) % me.n_ranks)
    dist.recv(theirs, src=(me.rank - 1) % me.n_ranks)
    return theirs


def list_missing(me: Self) -> Any:
    """The root gives no list to scatter."""
    import torch
    import torch.distributed as dist

    own = torch.zeros(1)
    dist.scatter(own, None, src=0)
    return own


def unequal_list(me: Self) -> Any:
    """The root's blocks are not of equal size."""
    import torch
    import torch.distributed as dist

    own = torch.zeros(2)
    blocks = [torch.ones(3 if rank == 1 else 2) for rank in range(me.n_ranks)]
    dist.scatter(own, blocks if me.rank == 0 else None, src=0)
    return own


EVERY = (
    correct,
    root_outside,
    rank_missing,
    bigger_receiver,
    smaller_receiver,
    other_type,
    column,
    swapped_order,
    list_on_every_rank,
    short_list,
    send_before_receive,
    list_missing,
    unequal_list,
)
