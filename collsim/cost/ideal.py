"""An ideal star, and how ranks pass through rounds on it: what the exact forms are made of.

On an ideal star a message of m bytes takes m / bandwidth on its sender's link and, α later, the
same on its receiver's link (cut-through). A link carries one message after the other in each
direction. There is one rank a host, and no overhead or gap.

This is derived from the rules of the model alone: it shares no code with the simulation, so that
either can check the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from collsim.errors import ScenarioError
from collsim.network import MAX_PICOSECONDS, transmission_ps

Ints = npt.NDArray[np.int64]

LONGEST = MAX_PICOSECONDS // 2
"""Times up to this many picoseconds (23 days), a few of them, can be added without overflow."""


def _check_span(times: npt.ArrayLike) -> None:
    if np.max(times, initial=0) > LONGEST:
        raise ScenarioError(
            "this would take 23 days of network time or more, beyond what exact forms can count; "
            "look for a bandwidth, latency or size with a wrong unit"
        )


@dataclass(frozen=True, slots=True)
class Ideal:
    """An ideal star.

    Attributes:
        alpha_ps: Latency of a route, both links together (ps).
        bandwidth: Of each link and direction (bytes/s).
        protocol: When a message starts: with both its steps, or with the sender's alone.
    """

    alpha_ps: int
    bandwidth: float
    protocol: Literal["rendezvous", "eager"] = "rendezvous"

    def __post_init__(self) -> None:
        if self.alpha_ps < 0:
            raise ValueError(f"alpha_ps must not be negative, got {self.alpha_ps}")
        if not self.bandwidth > 0:
            raise ValueError(f"bandwidth must be above 0, got {self.bandwidth}")
        if self.protocol not in ("rendezvous", "eager"):
            raise ValueError(f"protocol must be rendezvous or eager, got {self.protocol!r}")
        _check_span(self.alpha_ps)


@dataclass(frozen=True)
class Case:
    """What an exact form is asked about.

    Attributes:
        n_ranks: Number of ranks (p).
        nbytes: Bytes of a block: the whole message of a broadcast, one rank's share of a scatter
            or all_gather (n, or m).
        n_chunks: Chunks that a block is cut into (S).
        ideal: The network.
        root: Root rank.
        parameters: The algorithm's own parameters.
    """

    n_ranks: int
    nbytes: int
    n_chunks: int
    ideal: Ideal
    root: int = 0
    parameters: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (("n_ranks", 1), ("nbytes", 0), ("n_chunks", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if not 0 <= self.root < self.n_ranks:
            raise ValueError(f"root must be a rank, 0 to {self.n_ranks - 1}, got {self.root}")

    @property
    def alpha(self) -> int:
        """Latency of a route (ps)."""
        return self.ideal.alpha_ps

    def takes(self, nbytes: int) -> int:
        """Time that a message of `nbytes` bytes takes on a link (ps)."""
        return int(self.takes_each(nbytes))

    def takes_each(self, nbytes: npt.ArrayLike) -> Ints:
        """Time that each message takes on a link (ps)."""
        times = transmission_ps(nbytes, self.ideal.bandwidth)
        _check_span(times)
        return times

    @cached_property
    def offsets(self) -> Ints:
        """Byte of the block at which each chunk begins, and the end, int64[n_chunks + 1]."""
        return np.array([i * self.nbytes // self.n_chunks for i in range(self.n_chunks + 1)])

    @cached_property
    def segments(self) -> Ints:
        """Time that each chunk by itself takes on a link (ps), int64[n_chunks]."""
        return self.takes_each(np.diff(self.offsets))


class Clock:
    """When each rank begins its next step, moved on round by round.

    In a round a rank sends at most one message and receives at most one, in one step.
    (`give` lets it send two.) Ranks that do neither are not held up.

    Under rendezvous a receiver's link is free whenever a message starts. Eager messages of several
    senders may meet there; those of earlier rounds go first here, as they do if they come first.

    Attributes:
        begin: When each rank's next step begins (ps), int64[n_ranks].
        overtaken: Whether an eager message came to a receiver's link no later than another
            sender's of an earlier round; the times are not to be trusted then.
    """

    def __init__(self, case: Case) -> None:
        self.alpha = case.alpha
        self.is_eager = case.ideal.protocol == "eager"
        self.begin: Ints = np.zeros(case.n_ranks, np.int64)
        self.overtaken = False
        # The last message to each rank: its sender, when it came to the link and when it arrived.
        self._sender: Ints = np.full(case.n_ranks, -1, np.int64)
        self._came: Ints = np.full(case.n_ranks, -1, np.int64)
        self._arrived: Ints = np.zeros(case.n_ranks, np.int64)

    def round(self, src: Ints, dst: Ints, takes: Ints, after: Ints | int = 0) -> None:
        """Let each of `src` send a message to its one of `dst`, none of them twice.

        A message may be two, one behind the other: `takes` is what they take on a link together
        (ps), and the second one begins `after` the first (ps).
        """
        start = self._released(src, dst)
        end = self.begin.copy()
        end[src] = start + takes
        self._arrive(src, dst, start, takes, after, end)

    def give(self, src: Ints, dst: Ints, takes: Ints, sibling: Ints) -> None:
        """The same where up to two messages share their sender's link.

        Args:
            src: Sender of each message.
            dst: Its receiver.
            takes: Time that it takes on a link (ps).
            sibling: Index of the other message of the same sender, its own if there is none. Of
                two that are released at once, the one with the lower index goes first.
        """
        released = self._released(src, dst)
        index = np.arange(len(src))
        other = released[sibling]
        waits = (other < released) | ((other == released) & (sibling < index))
        start = np.where(waits, np.maximum(released, other + takes[sibling]), released)
        end = self.begin.copy()
        np.maximum.at(end, src, start + takes)
        self._arrive(src, dst, start, takes, 0, end)

    def makespan(self) -> int | None:
        """When the last rank is done (ps); None if a message was overtaken."""
        return None if self.overtaken else int(self.begin.max())

    def _released(self, src: Ints, dst: Ints) -> Ints:
        """When messages may start: with both steps, or with the sender's."""
        begin = self.begin
        return begin[src] if self.is_eager else np.maximum(begin[src], begin[dst])

    def _arrive(
        self, src: Ints, dst: Ints, start: Ints, takes: Ints, after: Ints | int, end: Ints
    ) -> None:
        """Take messages in, and begin the next steps."""
        comes = start + self.alpha
        if self.is_eager:
            # At one instant transfer ids decide, which are not known here; two empty messages
            # may come in any order.
            tied = (takes > 0) | (self._arrived[dst] > comes)
            early = comes < self._came[dst] + tied
            self.overtaken |= bool((early & (self._sender[dst] != src)).any())
            self._sender[dst], self._came[dst] = src, comes + after
            comes = np.maximum(comes, self._arrived[dst])
            self._arrived[dst] = comes + takes
        end[dst] = np.maximum(end[dst], comes + takes)
        _check_span(end)
        self.begin = end
