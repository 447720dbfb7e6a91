"""An independent reader of GOAL text, written from the format's public description.

Of collsim it knows nothing. What it accepts is what LogGOPSim's schedule compiler does
(`spcl/LogGOPSim`, `src/LogGOPSim/txt2bin.re`):

    num_ranks 2
    rank 0 {
    l1: send 8b to 1 tag 0
    l2: recv 8b from 1 tag 0
    l2 requires l1
    }
    …

The tag (0 by default) may be followed by `cpu` and `nic`; `calc` takes a time; comments stand
between ``/*`` and ``*/`` or behind ``//``; operations need no label.

Reference: Hoefler, Siebert, Lumsdaine: Group Operation Assembly Language, ICPP 2009.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["send", "recv", "calc"]

NUM_RANKS = re.compile(r"num_ranks (\d+)")
RANK = re.compile(r"rank (\d+) ?\{")
LABEL = re.compile(r"([A-Za-z]\w*) ?: ?(.*)", re.ASCII)
MESSAGE = re.compile(
    r"(?:send (?P<sent>\d+) ?b to (?P<dst>\d+)|recv (?P<received>\d+) ?b from (?P<src>\d+))"
    r"(?: tag (?P<tag>\d+))?(?: cpu (?P<cpu>\d+))?(?: nic (?P<nic>\d+))?"
)
CALC = re.compile(r"calc (\d+)(?: cpu (\d+))?")
DEPENDENCY = re.compile(r"([A-Za-z]\w*) (requires|irequires) ([A-Za-z]\w*)", re.ASCII)


@dataclass(slots=True)
class Operation:
    """One operation of a rank.

    Attributes:
        kind: What it does.
        amount: Bytes, or time for `calc`.
        peer: The other rank, −1 for `calc`.
        tag: What sends and receives are matched by, beside the peer.
        cpu: Which CPU of the rank it takes.
        nic: Which network interface.
        requires: Operations (their places in the rank's list) that must have ended before.
        irequires: Operations that must have started before.
    """

    kind: Kind
    amount: int
    peer: int = -1
    tag: int = 0
    cpu: int = 0
    nic: int = 0
    requires: list[int] = field(default_factory=list)
    irequires: list[int] = field(default_factory=list)


class GoalError(Exception):
    """The text is not GOAL; says which line, and why."""


def read_goal(text: str) -> list[list[Operation]]:
    """The operations of each rank, in the order of the text.

    Raises:
        GoalError: Line and reason.
    """
    n_ranks: int | None = None
    ranks: dict[int, list[Operation]] = {}
    lines = _lines(text)
    for number, line in lines:
        if found := NUM_RANKS.fullmatch(line):
            if n_ranks is not None or ranks:
                raise GoalError(f"line {number}: num_ranks comes once, and first")
            n_ranks = int(found[1])
        elif found := RANK.fullmatch(line):
            if n_ranks is None or int(found[1]) != len(ranks) or len(ranks) == n_ranks:
                raise GoalError(f"line {number}: not the next of {n_ranks} ranks")
            ranks[int(found[1])] = _block(number, lines, n_ranks)
        else:
            raise GoalError(f"line {number}: expected a rank, got {line!r}")
    if n_ranks is None or n_ranks < 1 or len(ranks) != n_ranks:
        raise GoalError(f"num_ranks says {n_ranks}, there are {len(ranks)}")
    return list(ranks.values())


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines without comments, with single spaces, empty ones left out."""
    bare = re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.S)
    for number, line in enumerate(bare.split("\n"), start=1):
        words = " ".join(line.partition("//")[0].split())
        if words:
            yield number, words


def _block(began: int, lines: Iterator[tuple[int, str]], n_ranks: int) -> list[Operation]:
    """The operations up to the closing bracket."""
    operations: list[Operation] = []
    place: dict[str, int] = {}
    for number, line in lines:
        if line == "}":
            return operations
        if found := DEPENDENCY.fullmatch(line):
            for label in (found[1], found[3]):
                if label not in place:
                    raise GoalError(f"line {number}: there is no {label} above")
            getattr(operations[place[found[1]]], found[2]).append(place[found[3]])
            continue
        label, rest = found.groups() if (found := LABEL.fullmatch(line)) else ("", line)
        if label in place:
            raise GoalError(f"line {number}: {label} is there twice")
        if label:
            place[label] = len(operations)
        operation = _operation(rest)
        if operation is None or operation.peer >= n_ranks:
            raise GoalError(f"line {number}: expected an operation, got {rest!r}")
        operations.append(operation)
    raise GoalError(f"line {began}: the rank has no closing bracket")


def _operation(text: str) -> Operation | None:
    if found := CALC.fullmatch(text):
        return Operation("calc", int(found[1]), cpu=int(found[2] or 0))
    if not (found := MESSAGE.fullmatch(text)):
        return None
    tag, cpu, nic = (int(found[name] or 0) for name in ("tag", "cpu", "nic"))
    if found["dst"] is not None:
        return Operation("send", int(found["sent"]), int(found["dst"]), tag, cpu, nic)
    return Operation("recv", int(found["received"]), int(found["src"]), tag, cpu, nic)
