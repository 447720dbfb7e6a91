"""Pieces of work that go wrong on purpose, for the tests of the gloo harness."""

import os
import signal
import time

from collsim.gloo.ranks import Self


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
                os.abort()
            case "exits":
                os._exit(3)
            case "raises":
                raise ZeroDivisionError("by hand")
            case "sleeps":
                time.sleep(60)
    dist.barrier()
