"""Hand work to ranks and wait for their answers; if these do not come, find the rank to blame."""

import math
import selectors
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from collsim.gloo.forks import Group
from collsim.gloo.wire import Closed, Incoming, write_some

GRACE: Final = 1.0
"""Seconds to go on listening after a rank's error: another rank may be its cause."""

LAST_WORDS: Final = 200
"""Characters shown of a dead rank's last line."""


@dataclass(frozen=True)
class Failure:
    """Why a piece of work failed.

    Attributes:
        what: The rank that is the cause, as far as can be told, and what happened to it.
        log: What that rank wrote to its standard error.
        is_unavailable: Whether this machine cannot do it at all.
    """

    what: str
    log: str = ""
    is_unavailable: bool = False


@dataclass
class Heard:
    """What has been heard from the ranks of a group: answers, errors, deaths, in that order."""

    answers: dict[int, Any] = field(default_factory=dict)
    raised: dict[int, str] = field(default_factory=dict)
    died: dict[int, str] = field(default_factory=dict)

    @property
    def ranks(self) -> set[int]:
        """The ranks from which anything has been heard."""
        return {*self.answers, *self.raised, *self.died}


def exchange(
    group: Group, requests: Sequence[bytes], timeout: float, caller: int
) -> list[Any] | Failure:
    """Send each rank its request, if there are any, and wait for all answers.

    No rank can hold this up: all pipes are read and written side by side, as far as they go, so a
    rank that is stopped in the middle of a message is only late.

    Args:
        group: The ranks.
        requests: What to send to each, encoded, or nothing.
        timeout: Seconds that this may take. Ranks that wait for another one give up then, which
            leaves that one as the only silent rank; so the server listens `GRACE` longer.
        caller: Descriptor that comes to its end when the caller has gone.

    Raises:
        Closed: The caller has gone.
    """
    n_ranks = len(group.children)
    heard = listen(group, requests, timeout + GRACE, caller, after_error=GRACE, after_death=0.0)
    if len(heard.answers) == n_ranks:
        return [heard.answers[rank] for rank in range(n_ranks)]
    return _blame(group, heard, timeout)


def listen(
    group: Group,
    requests: Sequence[bytes],
    patience: float,
    caller: int,
    *,
    after_error: float,
    after_death: float,
) -> Heard:
    """Send each rank its request, if there are any, and hear what becomes of it.

    Args:
        group: The ranks.
        requests: What to send to each, encoded, or nothing.
        patience: Seconds that this may take.
        caller: Descriptor that comes to its end when the caller has gone.
        after_error: Seconds to go on listening to the others after a rank raised.
        after_death: Seconds to go on listening to the others after a rank died.

    Raises:
        Closed: The caller has gone.
    """
    n_ranks, heard = len(group.children), Heard()
    deadline = time.monotonic() + patience
    with selectors.DefaultSelector() as selector:
        selector.register(caller, selectors.EVENT_READ)
        for rank, child in enumerate(group.children):
            selector.register(child.answers, selectors.EVENT_READ, (rank, Incoming()))
            if requests:
                rest = memoryview(requests[rank])
                selector.register(child.requests, selectors.EVENT_WRITE, rest)
        while len(heard.ranks) < n_ranks:
            events = selector.select(max(0.0, deadline - time.monotonic()))
            if not events:
                break
            for key, _ in events:
                if key.fd == caller:
                    raise Closed
                if isinstance(key.data, memoryview):
                    _write(selector, key)
                else:
                    kind = _read(selector, key, group, heard)
                    more = {"raised": after_error, "died": after_death}.get(kind, math.inf)
                    deadline = min(deadline, time.monotonic() + more)
    return heard


def _write(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    """Send more of a rank's request."""
    try:
        rest = write_some(key.fd, key.data)
    except Closed:  # its answers come to their end as well, and tell how
        rest = memoryview(b"")
    if rest:
        selector.modify(key.fd, selectors.EVENT_WRITE, rest)
    else:
        selector.unregister(key.fd)


def _read(
    selector: selectors.BaseSelector, key: selectors.SelectorKey, group: Group, heard: Heard
) -> str:
    """Take in more of what a rank answers; "answer", "raised", "died", or "" as yet."""
    rank, incoming = key.data
    try:
        if not incoming.read(key.fd):
            return ""
    except Closed:
        selector.unregister(key.fd)
        heard.died[rank] = _last_words(group, rank)
        return "died"
    selector.modify(key.fd, selectors.EVENT_READ, (rank, Incoming()))
    kind, value = incoming.message()
    if kind == "answer":
        heard.answers[rank] = value
    else:
        heard.raised[rank] = value
    return str(kind)


def _last_words(group: Group, rank: int) -> str:
    """How a rank ended, and the last line that it wrote."""
    child = group.children[rank]
    ended = child.reap(GRACE)
    last = child.read_log().rpartition("\n")[2].strip()
    return f"died: {ended} ({last[:LAST_WORDS]})" if last else f"died: {ended}"


def _blame(group: Group, heard: Heard, timeout: float) -> Failure:
    """The rank that failed first.

    A death explains everything. A rank that was stopped, or one with an error of its own, explains
    that others lost or missed it. Failing these it is a rank that says nothing, while others have
    noticed that they wait: of several, the one that has been at the same thing the longest.
    """
    silent = [rank for rank in range(len(group.children)) if rank not in heard.ranks]
    silent.sort(key=group.progress.since)
    stopped = [rank for rank in silent if group.children[rank].is_stopped]
    own = [rank for rank, text in heard.raised.items() if not blames_a_peer(text)]
    rank = next(iter([*heard.died, *stopped, *own, *silent, *heard.raised]))
    late = f"did not answer within {timeout:g} s"
    what = f"was stopped (SIGSTOP) and {late}" if rank in stopped else late
    what = heard.died.get(rank) or heard.raised.get(rank) or what
    doing = group.progress.doing(rank)
    where = f" (last seen: {doing})" if doing else ""
    return Failure(f"rank {rank} {what}{where}", group.children[rank].read_log())


def blames_a_peer(text: str) -> bool:
    """Whether a rank's error is that another one has gone or keeps it waiting."""
    signs = ("onnection closed", "onnection reset", "imed out", "timeout", "roken pipe")
    return any(sign in text for sign in signs)
