"""Pieces of work that go wrong on purpose, for the tests of the gloo harness."""

import os
import signal
import time
from typing import Any

from collsim.gloo import ranks, wire
from collsim.gloo.outcomes import Fate
from collsim.gloo.progress import Self


def hold(me: Self, **_: object) -> int:
    """Answer with the rank's process."""
    return os.getpid()


def dies(me: Self, *, rank: int, how: str) -> None:
    """Let one rank end in a bad way while the others wait for it in a barrier."""
    import torch.distributed as dist

    me.says("on the brink")
    if me.rank == rank:
        match how:
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stopped":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "aborts":
                os.write(2, b"first line\nwhat(): 8 vs 4\n")
                os.abort()
            case "exits":
                os._exit(3)
            case "raises":
                raise ZeroDivisionError("by hand")
            case "raises without a word":
                raise AssertionError
            case "sleeps":
                time.sleep(60)
    dist.barrier()


def stops_in_its_answer(me: Self, *, rank: int) -> bytes:
    """Let one rank write a part of a large answer and stop."""

    def write_a_little(descriptor: int, body: memoryview) -> memoryview:
        os.write(descriptor, body[:1000])
        os.kill(os.getpid(), signal.SIGSTOP)
        raise AssertionError("nobody lets it go on")

    if me.rank == rank:
        wire.write_some = write_a_little
    return bytes(1 << 20)


def dies_in_step(me: Self, *, rank: int, step: int, **plan: Any) -> object:
    """Run a plan in which one rank is killed when it comes to a step."""
    run_step = ranks._run_step

    def run_or_die(
        me: Self, channel: int, planned: ranks.PlannedStep, tensor: Any, record: ranks.Record
    ) -> None:
        if me.rank == rank and planned.step == step:
            me.says(planned.text)
            os.kill(os.getpid(), signal.SIGKILL)
        run_step(me, channel, planned, tensor, record)

    ranks._run_step = run_or_die
    return ranks.run_plan(me, **plan)


def changes_its_mind(me: Self, **plan: Any) -> object:
    """Run a plan after whose first run rank 1 finds a wrong byte in its memory."""
    run_channels = ranks._run_channels
    runs = []

    def run_and_spoil(me: Self, channels: Any, tensor: Any, record: ranks.Record) -> None:
        run_channels(me, channels, tensor, record)
        runs.append(record)
        if me.rank == 1 and len(runs) > 1:
            record.buffer[-1] ^= 1

    ranks._run_channels = run_and_spoil
    return ranks.run_plan(me, **plan)


def snooze(me: Self, *, seconds: float) -> Fate:
    """Say nothing for a while."""
    time.sleep(seconds)
    return Fate("returned")


def gathers_columns(me: Self) -> Any:
    """Gather a column of each rank's matrix into columns, which are not contiguous."""
    import torch
    import torch.distributed as dist

    matrix = torch.tensor([[1.0, 2.0], [3.0, 4.0]]) * (me.rank + 1)
    places = torch.zeros(2, me.n_ranks)
    dist.all_gather([places[:, rank] for rank in range(me.n_ranks)], matrix[:, 0])
    return places.flatten()


def scatters_columns(me: Self) -> Any:
    """Scatter the columns of the root's matrix, which are not contiguous."""
    import torch
    import torch.distributed as dist

    own = torch.zeros(2)
    matrix = torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    dist.scatter(own, list(matrix.t()) if me.rank == 0 else None, src=0)
    return own
