"""Rank processes: how they are forked, how they ended, and how they are made to end.

Nothing here has a name in the file system: the file through which ranks find each other and those
that take what they write are anonymous memory, so nothing is left over, whoever is killed.
"""

import ctypes
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from collsim.gloo.lab import INTERFACE, Shape
from collsim.gloo.namespaces import Namespaces, build, enter
from collsim.gloo.progress import Progress, Self
from collsim.gloo.ranks import serve

PR_SET_PDEATHSIG: Final = 1
"""Of Linux's prctl: the signal that this process gets when its parent ends."""


@dataclass
class Child:
    """A rank's process, with the ends of its pipes that the server keeps.

    Attributes:
        pid: Its process number.
        requests: Where to write pieces of work.
        answers: Where to read what came of them.
        log: What it wrote to its standard error.
        ended: How it ended, "" as long as nobody has seen it end.
    """

    pid: int
    requests: int
    answers: int
    log: int
    ended: str = ""

    @property
    def is_stopped(self) -> bool:
        """Whether a signal has stopped it (state T of Linux)."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] == "T"

    def read_log(self) -> str:
        """What it wrote to its standard error."""
        written = os.pread(self.log, os.fstat(self.log).st_size, 0)
        return written.decode(errors="replace").strip()

    def reap(self, patience: float) -> str:
        """Wait `patience` seconds for its end, then kill it; how it ended."""
        deadline = time.monotonic() + patience
        while not self.ended:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if not found and time.monotonic() >= deadline:
                os.kill(self.pid, signal.SIGKILL)
                found, status = os.waitpid(self.pid, 0)
            if found:
                self.ended = spell_exit(os.waitstatus_to_exitcode(status))
            else:
                time.sleep(0.002)
        return self.ended


def spell_exit(code: int) -> str:
    """An exit code as `subprocess` counts it: "exit code 3", "signal SIGKILL"."""
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


@dataclass
class Group:
    """Ranks that belong together.

    Attributes:
        progress: What each one says that it is doing.
        store: The file in memory through which they find each other.
        lab: Their network namespaces, None if they are on loopback.
        children: Their processes.
    """

    progress: Progress
    store: int
    lab: Namespaces | None = None
    children: list[Child] = field(default_factory=list)

    def end(self, patience: float) -> None:
        """End and reap all ranks, killing those that are left after `patience` seconds."""
        for child in self.children:
            os.close(child.requests)  # a rank that waits for work goes at the end of its input
        deadline = time.monotonic() + patience
        for child in self.children:
            child.reap(deadline - time.monotonic())
            os.close(child.answers)
            os.close(child.log)
        os.close(self.store)
        if self.lab is not None:
            self.lab.close()


def fork_group(n_ranks: int, timeout: float, foreign: int, shape: Shape | None = None) -> Group:
    """Start the ranks of a group.

    Args:
        n_ranks: How many.
        timeout: Seconds that a rank may wait for others.
        foreign: A descriptor of the server that no rank should hold open.
        shape: The lab that they live in; on loopback if None.

    Raises:
        OSError: There cannot be so many processes or open files; none is left running.
        LabUnavailable: There can be no lab.
    """
    lab = None if shape is None else build(shape)
    group = Group(Progress(n_ranks), os.memfd_create("store"), lab)
    try:
        for rank in range(n_ranks):
            me = Self(rank, n_ranks, timeout, board=group.progress)
            group.children.append(_fork_rank(me, group, foreign))
    except OSError:
        group.end(patience=0)
        raise
    return group


def _fork_rank(me: Self, group: Group, foreign: int) -> Child:
    server = os.getpid()
    log = os.memfd_create(f"rank-{me.rank}")
    request_end, requests = os.pipe()
    answers, answer_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == server:  # else it ended before the line above
                others = [
                    end for child in group.children for end in (child.requests, child.answers)
                ]
                _settle(me.rank, group.lab)
                _redirect(log, (requests, answers, foreign, *others))
                serve(me, group.store, request_end, answer_end)
                code = 0
        finally:
            os._exit(code)
    os.close(request_end)
    os.close(answer_end)
    os.set_blocking(requests, False)
    return Child(pid, requests, answers, log)


def _settle(rank: int, lab: Namespaces | None) -> None:
    """Choose the network that a rank uses, and go there."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo" if lab is None else INTERFACE
    if lab is not None:
        enter(lab.ranks[rank])
        lab.close()


def _redirect(log: int, foreign: Iterable[int]) -> None:
    """Give a rank no input, no output, and its log for errors; close what is not its own."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for instead, standard in ((nowhere, 0), (nowhere, 1), (log, 2)):
        os.dup2(instead, standard)
    for descriptor in foreign:
        os.close(descriptor)
