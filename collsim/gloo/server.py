"""The process that forks ranks: it imports torch once and has one thread, so forking is safe.

It obeys requests on its standard input. At the end of its input it kills its ranks and goes, so
nothing outlives the caller, even one that was killed.
"""

import ctypes
import mmap
import os
import selectors
import shutil
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from collsim.gloo.ranks import PROGRESS_BYTES, TEXT_BYTES, serve
from collsim.gloo.wire import Closed, receive, send

GRACE: Final = 1.0
"""Seconds to go on listening after a rank's error: another rank may be its cause."""

PR_SET_PDEATHSIG: Final = 1


@dataclass
class Group:
    """The ranks that were forked, and the ends of their pipes that the server keeps."""

    folder: Path
    progress: mmap.mmap
    pids: list[int] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    exits: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """Why a piece of work failed.

    Attributes:
        rank: The rank that is the cause, as far as can be told.
        what: What happened to it.
        where: What it was doing.
    """

    rank: int
    what: str
    where: str


def fork_ranks(n_ranks: int, timeout: float, folder: Path) -> Group:
    """Start the ranks of a group."""
    group = Group(folder, mmap.mmap(-1, n_ranks * PROGRESS_BYTES))
    for rank in range(n_ranks):
        request_end, requests = os.pipe()
        answers, answer_end = os.pipe()
        group.requests.append(requests)
        group.answers.append(answers)
        pid = os.fork()
        if pid == 0:
            _become_rank(rank, n_ranks, timeout, group, request_end, answer_end)
        os.close(request_end)
        os.close(answer_end)
        group.pids.append(pid)
    return group


def _become_rank(
    rank: int, n_ranks: int, timeout: float, group: Group, request_end: int, answer_end: int
) -> None:
    """What the child does after the fork; it never returns."""
    code = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for inherited in (*group.requests, *group.answers):
            os.close(inherited)
        nowhere = os.open(os.devnull, os.O_RDWR)
        errors = os.open(group.folder / f"rank-{rank}.log", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)
        os.dup2(errors, 2)
        serve(rank, n_ranks, timeout, group.folder, group.progress, request_end, answer_end)
        code = 0
    finally:
        os._exit(code)


def collect(group: Group, timeout: float, stdin: int) -> list[Any] | Failure:
    """Wait for every rank's answer, or find out which rank keeps it from coming.

    Raises:
        Closed: The caller has gone.
    """
    deadline = time.monotonic() + timeout
    answers: dict[int, Any] = {}
    failures: dict[int, str] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(stdin, selectors.EVENT_READ, -1)
        for rank, descriptor in enumerate(group.answers):
            selector.register(descriptor, selectors.EVENT_READ, rank)
        while len(answers) < len(group.pids):
            events = selector.select(max(0.0, deadline - time.monotonic()))
            if not events:
                break
            for key, _ in events:
                if key.data == -1:
                    raise Closed
                try:
                    kind, value = receive(key.fd)
                except Closed:
                    selector.unregister(key.fd)
                    kind, value = "died", _how_it_ended(group, key.data)
                if kind == "answer":
                    answers[key.data] = value
                    continue
                deadline = min(deadline, time.monotonic() + (0 if kind == "died" else GRACE))
                failures.setdefault(key.data, value if kind == "raised" else f"died: {value}")
    if len(answers) == len(group.pids):
        return [answers[rank] for rank in range(len(group.pids))]
    return _blame(group, answers, failures, timeout)


def _blame(
    group: Group, answers: dict[int, Any], failures: dict[int, str], timeout: float
) -> Failure:
    """The rank that failed first: a death explains a hang, a hang explains a lost connection."""
    died = [rank for rank, text in failures.items() if text.startswith("died")]
    silent = [r for r in range(len(group.pids)) if r not in answers and r not in failures]
    stopped = [rank for rank in silent if _state(group.pids[rank]) == "T"]
    own = [rank for rank, text in failures.items() if not _blames_a_peer(text)]
    for ranks in (died, stopped, own, silent, list(failures)):
        if ranks:
            rank = min(ranks)
            break
    if rank in stopped:
        what = f"was stopped (SIGSTOP) and did not answer within {timeout:g} s"
    else:
        what = failures.get(rank, f"did not answer within {timeout:g} s")
    return Failure(rank, what, _doing(group, rank))


def _blames_a_peer(text: str) -> bool:
    """Whether a rank's error is that another one has gone or keeps it waiting."""
    signs = ("onnection closed by peer", "onnection reset by peer", "imed out", "roken pipe")
    return any(sign in text for sign in signs)


def _doing(group: Group, rank: int) -> str:
    start = rank * PROGRESS_BYTES
    return group.progress[start : start + TEXT_BYTES].rstrip(b"\0 ").decode(errors="replace")


def _state(pid: int) -> str:
    """The process state letter of Linux: R, S, T (stopped), Z, …"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _how_it_ended(group: Group, rank: int) -> str:
    """A dead rank's exit code or signal, and the last line that it wrote."""
    if rank not in group.exits:
        _, status = os.waitpid(group.pids[rank], 0)
        code = os.waitstatus_to_exitcode(status)
        ended = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        lines = (group.folder / f"rank-{rank}.log").read_text(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        group.exits[rank] = f"{ended} ({last[:200]})" if last else ended
    return group.exits[rank]


def end(group: Group, *, politely: bool) -> None:
    """Stop and reap all ranks, and remove what they left."""
    for descriptor in group.requests:
        os.close(descriptor)  # a rank that waits for work goes at the end of its input
    for rank, pid in enumerate(group.pids):
        if rank not in group.exits:
            if not politely:
                os.kill(pid, signal.SIGKILL)
            _reap(pid)
    for descriptor in group.answers:
        os.close(descriptor)
    shutil.rmtree(group.folder, ignore_errors=True)


def _reap(pid: int) -> None:
    """Wait for a process; kill it if it does not go by itself."""
    deadline = time.monotonic() + GRACE
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return
        time.sleep(0.002)


def main() -> None:
    """Obey requests until there are no more."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    stdin, stdout = sys.stdin.fileno(), os.dup(sys.stdout.fileno())
    os.dup2(2, 1)  # what libraries print must not mix with answers
    group: Group | None = None
    try:
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        send(stdout, ("ready", str(torch.__version__) if dist.is_gloo_available() else ""))
        while True:
            request, *arguments = receive(stdin)
            if request == "group":
                n_ranks, timeout, folder = arguments
                group = fork_ranks(n_ranks, timeout, Path(folder))
                answer = collect(group, timeout, stdin)
            elif request == "work" and group is not None:
                function, keywords, timeout = arguments
                for descriptor, own in zip(group.requests, keywords, strict=True):
                    send(descriptor, (function, own))
                answer = collect(group, timeout, stdin)
            elif group is not None:
                end(group, politely=True)
                group, answer = None, []
            if isinstance(answer, Failure) and group is not None:
                end(group, politely=False)
                group = None
            send(stdout, answer)
    except Closed:
        pass
    except ImportError as error:
        send(stdout, ("missing", str(error)))
    finally:
        if group is not None:
            end(group, politely=False)
