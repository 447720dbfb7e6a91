"""Mistakes in what is handed to torch's collectives: what ranks execute, and what lessons show.

Each function is one mistake, made by four ranks, and gives what the rank's tensor holds at its end.
"""

import resource
import warnings
from collections.abc import Callable
from typing import Any

from collsim.gloo.outcomes import Fate
from collsim.gloo.progress import Self


def attempt(me: Self, *, mistake: Callable[[Self], Any]) -> Fate:
    """Make a mistake and note warnings; a rank that aborts leaves no core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        held = mistake(me).tolist()
    return Fate("returned", "; ".join(str(each.message) for each in warned), held)


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

    dtype = torch.int32 if me.rank == 3 else torch.float32
    tensor = torch.full((4,), me.rank + 1, dtype=dtype)
    dist.broadcast(tensor, src=0)
    return tensor


def column(me: Self) -> Any:
    """Everyone hands over a column of a matrix, which is not contiguous."""
    import torch
    import torch.distributed as dist

    factor = 10 if me.rank == 0 else 1
    matrix = torch.tensor([[1.0, 2.0], [3.0, 4.0]]) * factor
    dist.broadcast(matrix[:, 0], src=0)
    return matrix.flatten()


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


def roots_differ(me: Self) -> Any:
    """Rank 3 takes rank 2 for the root, the others take rank 0."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((4,), float(me.rank + 1))
    dist.broadcast(tensor, src=2 if me.rank == 3 else 0)
    return tensor


def short_scatter_list(me: Self) -> Any:
    """The root gives scatter three blocks for four ranks."""
    import torch
    import torch.distributed as dist

    own = torch.zeros(1)
    blocks = [torch.full((1,), float(rank + 1)) for rank in range(3)]
    dist.scatter(own, blocks if me.rank == 0 else None, src=0)
    return own


def unequal_inputs(me: Self) -> Any:
    """Rank 3 gives all_gather two elements, the others give one."""
    import torch
    import torch.distributed as dist

    own = torch.full((2 if me.rank == 3 else 1,), float(me.rank + 1))
    blocks = [torch.zeros(1) for _ in range(me.n_ranks)]
    dist.all_gather(blocks, own)
    return torch.cat(blocks)


def unequal_sums(me: Self) -> Any:
    """Rank 3 adds six elements where the others add four."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((6 if me.rank == 3 else 4,), float(me.rank + 1))
    dist.all_reduce(tensor)
    return tensor


def summed_column(me: Self) -> Any:
    """Everyone adds a column of a matrix, which is not contiguous."""
    import torch
    import torch.distributed as dist

    matrix = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    dist.all_reduce(matrix[:, 0])
    return matrix.flatten()


def scattered_column(me: Self) -> Any:
    """Everyone takes its block into a column, which is not contiguous."""
    import torch
    import torch.distributed as dist

    matrix = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    blocks = [torch.full((2,), 10.0 * (rank + 1)) for rank in range(me.n_ranks)]
    dist.scatter(matrix[:, 0], blocks if me.rank == 0 else None, src=0)
    return matrix.flatten()
