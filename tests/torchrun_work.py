"""What torchrun starts for a test: a piece of work that argv names; rank 0 prints what it gave."""

import json
import sys
import time

from collsim.errors import ExecutionError
from collsim.gloo import torchrun_leader
from collsim.gloo.progress import Self


def raises(me: Self) -> None:
    """Rank 2 has an error of its own, while the others wait for it."""
    import torch.distributed as dist

    me.says("on the brink")
    if me.rank == 2:
        raise ZeroDivisionError("by hand")
    dist.barrier()


def raises_unheard(me: Self) -> None:
    """Rank 2 has an error of its own, which rank 0 is too busy to hear in time."""
    if me.rank == 2:
        raise ZeroDivisionError("by hand")
    if me.rank == 0:
        time.sleep(me.timeout + 1.5)


def sleeps(me: Self) -> None:
    """Rank 2 does not come back, while the others wait for it."""
    import torch.distributed as dist

    if me.rank == 2:
        time.sleep(60)
    dist.barrier()


def waits(me: Self) -> None:
    """Ranks meet beside the network, but rank 2 does not come."""
    if me.rank != 2:
        me.meet()


def clocks(me: Self) -> tuple[int, int]:
    """What time it is (ns), on a clock of this machine and on the one that ranks share."""
    import torch.distributed as dist

    me.board.agree()
    dist.barrier()
    return time.monotonic_ns(), me.board.now()


def main() -> None:
    """Let the ranks do the work, and say what rank 0 is told."""
    with torchrun_leader() as leader:
        if leader is None:
            return
        try:
            with leader.group(leader.n_ranks, timeout=2) as group:
                given = group.run(f"tests.torchrun_work:{sys.argv[1]}", [{}] * leader.n_ranks)
                sys.stdout.write(json.dumps(given))
        except ExecutionError as error:
            sys.stdout.write("\n".join([str(error), *getattr(error, "__notes__", ())]))


if __name__ == "__main__":
    main()
