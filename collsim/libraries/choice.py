"""What a library is asked, and what it would do: the words that its rules are written in."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from collsim.program import check_members

MANY: Final = sys.maxsize
"""The end of a last band."""


@dataclass(frozen=True, slots=True)
class Call:
    """A collective call, as far as libraries look at it.

    Attributes:
        collective: Its name in `torch.distributed`.
        n_ranks: How many ranks take part.
        nbytes: Bytes of the argument: the message of a broadcast, one rank's share otherwise.
        groups: The ranks of each host; empty if each rank has a host of its own.
        element_bytes: Bytes of one element of the tensor.

    Raises:
        ValueError: A number is out of range, or `groups` are not the ranks.
    """

    collective: str
    n_ranks: int
    nbytes: int
    groups: tuple[tuple[int, ...], ...] = ()
    element_bytes: int = 1

    def __post_init__(self) -> None:
        if self.n_ranks < 1:
            raise ValueError(f"n_ranks must be at least 1, got {self.n_ranks}")
        if self.nbytes < 0:
            raise ValueError(f"nbytes must not be negative, got {self.nbytes}")
        if self.element_bytes < 1:
            raise ValueError(f"element_bytes must be at least 1, got {self.element_bytes}")
        if self.groups:
            check_members([rank for group in self.groups for rank in group], self.n_ranks)

    @property
    def n_hosts(self) -> int:
        """How many hosts have ranks."""
        return sum(1 for group in self.groups if group) or self.n_ranks

    @property
    def shares_hosts(self) -> bool:
        """Whether some ranks are on one host."""
        return self.n_hosts < self.n_ranks


@dataclass(frozen=True, slots=True)
class LibraryChoice:
    """What a library would do with a call.

    Attributes:
        library: The library, a name in `LIBRARIES`.
        version: The version that the rule was read from.
        algorithm: The algorithm in collsim's table of the collective that sends the same messages;
            None if there is none.
        native_name: What the library calls it.
        rule: Which rule applied, with its thresholds (p ranks, n bytes).
        segment_bytes: Bytes of a segment, None if blocks are sent whole.
        parameters: The program's own parameters.
        note: How the library's differs, or why there is no algorithm; "" if neither.
    """

    library: str
    version: str
    algorithm: str | None
    native_name: str
    rule: str
    segment_bytes: int | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    note: str = ""

    def segments(self, nbytes: int) -> int:
        """Into how many pieces a block of `nbytes` bytes is cut."""
        return 1 if self.segment_bytes is None else max(1, ceil(nbytes / self.segment_bytes))


@dataclass(frozen=True, slots=True)
class Library:
    """A library's rules.

    Attributes:
        title: How people call it.
        version: The version that the rules were read from.
        rules: What it does, by collective.
        others: Why there is no rule for other collectives.
    """

    title: str
    version: str
    rules: Mapping[str, Callable[[Call], LibraryChoice]]
    others: str = ""


Bands = tuple[tuple[int, int], ...]
"""(end, value) in rising order: the value holds below that end, from the end before it."""


def find_band(bands: Bands, number: int, name: str) -> tuple[int, str]:
    """The value of the band that `number` is in, and the band in words: "8 ≤ p < 16"."""
    start = 0
    for end, value in bands:
        if number < end:
            return value, spell_band(name, start, end)
        start = end
    raise ValueError(f"{number} is in none of the bands {bands}")


def spell_band(name: str, start: int, end: int) -> str:
    """A band in words: "p < 4", "8 ≤ p < 16", "n ≥ 8,192", "any n"."""
    if end == MANY:
        return f"{name} ≥ {start:,}" if start else f"any {name}"
    return f"{start:,} ≤ {name} < {end:,}" if start else f"{name} < {end:,}"


def is_power_of_two(number: int) -> bool:
    """Whether a positive number is a power of two."""
    return number & (number - 1) == 0
