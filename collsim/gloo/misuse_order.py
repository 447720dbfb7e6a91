"""Mistakes in when, and in which order, ranks call: what they execute, and what lessons show.

Each function is one mistake, made by four ranks, and gives what the rank's tensor holds at its end.
"""

import os
import signal
import time
from typing import Any

from collsim.gloo.progress import Self


def rank_missing(me: Self) -> Any:
    """Rank 3 never calls."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((4,), float(me.rank + 1))
    if me.rank != 3:
        dist.broadcast(tensor, src=0)
    return tensor


def swapped_order(me: Self) -> Any:
    """Rank 3 makes two broadcasts of equal size in the other order."""
    import torch
    import torch.distributed as dist

    weights = torch.full((2,), 1.0 if me.rank == 0 else 0.0)
    biases = torch.full((2,), 2.0 if me.rank == 0 else 0.0)
    for tensor in (biases, weights) if me.rank == 3 else (weights, biases):
        dist.broadcast(tensor, src=0)
    return torch.cat([weights, biases])


def send_before_receive(me: Self) -> Any:
    """Everyone sends to the right, and only then receives from the left."""
    import torch
    import torch.distributed as dist

    mine, theirs = torch.full((1,), float(me.rank + 1)), torch.zeros(1)
    dist.send(mine, dst=(me.rank + 1) % me.n_ranks)
    dist.recv(theirs, src=(me.rank - 1) % me.n_ranks)
    return theirs


def other_collective(me: Self) -> Any:
    """Rank 3 sums before the broadcast, the others sum after it."""
    import torch
    import torch.distributed as dist

    weights, count = torch.full((2,), float(me.rank + 1)), torch.ones(1)
    if me.rank == 3:
        dist.all_reduce(count)
    dist.broadcast(weights, src=0)
    if me.rank != 3:
        dist.all_reduce(count)
    return torch.cat([weights, count])


def early_read(me: Self) -> Any:
    """Everyone reads the tensor before waiting for the broadcast."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((4,), float(me.rank + 1))
    if me.rank == 0:
        time.sleep(0.3)  # the root is late
    handle = dist.broadcast(tensor, src=0, async_op=True)
    seen = tensor.clone()
    handle.wait()
    return seen


def early_write(me: Self) -> Any:
    """The root changes the tensor before waiting for the broadcast."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((4,), float(me.rank + 1))
    if me.rank == 2:
        time.sleep(0.6)  # a receiver is late
    handle = dist.broadcast(tensor, src=0, async_op=True)
    if me.rank == 0:
        time.sleep(0.3)  # the root computes its next values meanwhile
        tensor.fill_(9.0)
    handle.wait()
    return tensor


def call_after_timeout(me: Self) -> Any:
    """Rank 3 comes to the barrier too late, and the others go on without it."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((4,), float(me.rank + 1))
    if me.rank == 3:
        time.sleep(me.timeout + 0.5)
    try:
        dist.barrier()
    except RuntimeError:
        me.says("going on")
    dist.broadcast(tensor, src=0)
    return tensor


def rank_killed(me: Self) -> Any:
    """Rank 3 is killed while the others sum."""
    import torch
    import torch.distributed as dist

    tensor = torch.full((4,), float(me.rank + 1))
    if me.rank == 3:
        time.sleep(0.3)  # the others are in the call by then
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(tensor)
    return tensor
