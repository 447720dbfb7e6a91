"""Mistakes with groups of three of the four ranks: what they execute, and what lessons show.

Each function is one mistake, made by four ranks, and gives what the rank's tensor holds at its end.
"""

from typing import Any

from collsim.gloo.progress import Self


def root_not_in_group(me: Self) -> Any:
    """Rank 3, the last of 0, 1 and 3, is meant as root but called 2."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((4,), float(me.rank + 1))
    group = dist.new_group([0, 1, 3])
    if me.rank in (0, 1, 3):
        dist.broadcast(tensor, src=2, group=group)
    return tensor


def group_rank_as_root(me: Self) -> Any:
    """Rank 3, the last of 1, 2 and 3, is meant as root but called 2."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((4,), float(me.rank + 1))
    group = dist.new_group([1, 2, 3])
    if me.rank in (1, 2, 3):
        dist.broadcast(tensor, src=2, group=group)
    return tensor


def call_from_outside(me: Self) -> Any:
    """Rank 3 takes part in a broadcast of a group of ranks 0, 1 and 2."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((4,), float(me.rank + 1))
    group = dist.new_group([0, 1, 2])
    dist.broadcast(tensor, src=0, group=group)
    return tensor
