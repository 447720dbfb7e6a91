"""A small, independent LogGOPS interpreter of GOAL text: of collsim it knows nothing.

The model is LogGOPSim's with its network "LogGP" (Hoefler, Schneider, Lumsdaine: LogGOPSim -
Simulating Large-Scale Applications in the LogGOPS Model, HPDC 2010), one CPU and one NIC a rank:

* A send of n bytes needs the CPU and the NIC's sending side. It takes the CPU for o + (n − 1)O and
  the sending side for g + (n − 1)G. An eager one (n ≤ S) has ended at once, as far as `requires`
  goes; what comes after it still waits for CPU and NIC.
* Its first byte arrives after o + L. The message then waits for the receiver's CPU and for the
  NIC's receiving side; it takes the CPU for o + (n − 1)max(O, G), the side for
  g + (n − 1)G.
* A receive takes nothing by itself. It ends when a message of its source and tag has begun to take
  the CPU; what comes after it waits for the CPU, and so for the last byte.
* A larger message (n > S) ends its send only when its receive takes it.
* A rank ends when its CPU does.

So a rank that takes a message in cannot begin to send. LogGP's own overhead is o alone; `duplex`
says that, and leaves the CPU to sends meanwhile.

Whatever happens at one time happens in the order in which it was first asked for; sends come
before receives among the operations that one event sets free.
"""

from collections import defaultdict
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Literal

from tests.goal import Operation, read_goal

EAGER = 1 << 62
"""An S beyond every message."""


@dataclass(frozen=True, slots=True)
class LogGOPS:
    """The parameters, whole numbers of any one unit of time; S in bytes.

    `duplex` is not LogGOPSim's: incoming messages take the NIC's receiving side, but no CPU.
    """

    L: int
    o: int
    g: int
    G: int
    O: int = 0  # noqa: E741
    S: int = EAGER
    duplex: bool = False


class Stuck(Exception):
    """Operations were left over."""


def end_times(text: str, machine: LogGOPS) -> list[int]:
    """When each rank is done with everything.

    Raises:
        GoalError: The text is not GOAL.
        Stuck: Some operations never ran, or never met.
    """
    return _Run(read_goal(text), machine).play()


@dataclass(slots=True)
class _Message:
    src: int
    place: int  # of its send
    dst: int
    tag: int
    nbytes: int
    taken: int = 0  # when the receiver has all of it


Kind = Literal["operation", "message", "end"]
Event = tuple[int, int, Kind, int, "int | _Message"]
"""Time, serial, what it is, the rank, and an operation's place or a message."""


class _Run:
    """One interpretation: clocks of each rank, a queue of events, and who waits for whom."""

    def __init__(self, ranks: list[list[Operation]], machine: LogGOPS) -> None:
        self.ranks, self.machine = ranks, machine
        self.cpu, self.sending, self.receiving, self.done = ([0] * len(ranks) for _ in range(4))
        self.events: list[Event] = []
        self.serial = count()
        self.unmet = [[len(op.requires) + len(op.irequires) for op in own] for own in ranks]
        self.after_end: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.after_start: dict[tuple[int, int], list[int]] = defaultdict(list)
        for rank, own in enumerate(ranks):
            for place, op in enumerate(own):
                for other in op.requires:
                    self.after_end[rank, other].append(place)
                for other in op.irequires:
                    self.after_start[rank, other].append(place)
        self.posted: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        self.unexpected: dict[tuple[int, int, int], list[_Message]] = defaultdict(list)
        self.free: set[tuple[int, int]] = set()
        self.left = sum(map(len, ranks))

    def play(self) -> list[int]:
        for rank, own in enumerate(self.ranks):
            self.free.update((rank, i) for i in range(len(own)) if not self.unmet[rank][i])
            self._queue_free(0)
        while self.events:
            time, serial, kind, rank, what = heappop(self.events)
            if isinstance(what, _Message):
                self._arrive(time, serial, what)
            elif kind == "end":
                self._ends(rank, what)
            else:
                getattr(self, f"_{self.ranks[rank][what].kind}")(time, serial, rank, what)
            self._queue_free(time if kind == "end" else 0)
        if self.left or any(self.posted.values()) or any(self.unexpected.values()):
            raise Stuck(f"{self.left} operations never ended")
        return [max(both) for both in zip(self.cpu, self.done, strict=True)]

    def _queue_free(self, now: int) -> None:
        """Queue what has become free, rank by rank, sends first."""
        kinds = ("send", "recv", "calc")
        order = sorted(
            self.free, key=lambda at: (at[0], kinds.index(self.ranks[at[0]][at[1]].kind), at[1])
        )
        self.free.clear()
        for rank, place in order:
            is_send = self.ranks[rank][place].kind == "send"
            time = max(now, self.cpu[rank], self.sending[rank] if is_send else 0)
            self._queue(time, next(self.serial), rank, place)

    def _queue(self, time: int, serial: int, rank: int, what: "int | _Message") -> None:
        kind: Kind = "operation" if isinstance(what, int) else "message"
        heappush(self.events, (time, serial, kind, rank, what))

    def _starts(self, rank: int, place: int) -> None:
        self._release(rank, self.after_start[rank, place])

    def _ends(self, rank: int, place: int) -> None:
        self.left -= 1
        self._release(rank, self.after_end[rank, place])

    def _release(self, rank: int, places: list[int]) -> None:
        for place in places:
            self.unmet[rank][place] -= 1
            if not self.unmet[rank][place]:
                self.free.add((rank, place))

    def _calc(self, time: int, serial: int, rank: int, place: int) -> None:
        if self.cpu[rank] > time:
            return self._queue(self.cpu[rank], serial, rank, place)
        self.cpu[rank] = time + self.ranks[rank][place].amount
        self._starts(rank, place)
        return self._ends(rank, place)

    def _send(self, time: int, serial: int, rank: int, place: int) -> None:
        m, op = self.machine, self.ranks[rank][place]
        able = max(self.cpu[rank], self.sending[rank])
        if able > time:
            return self._queue(able, serial, rank, place)
        self.cpu[rank] = time + m.o + (op.amount - 1) * m.O
        self.sending[rank] = time + m.g + (op.amount - 1) * m.G
        message = _Message(rank, place, op.peer, op.tag, op.amount)
        self._queue(time + m.o + m.L, next(self.serial), op.peer, message)
        self._starts(rank, place)
        if op.amount <= m.S:
            self._ends(rank, place)
        return None

    def _arrive(self, time: int, serial: int, message: _Message) -> None:
        m, dst, rest = self.machine, message.dst, message.nbytes - 1
        able = max(0 if m.duplex else self.cpu[dst], self.receiving[dst])
        if able > time:
            return self._queue(able, serial, dst, message)
        message.taken = time + m.o + rest * max(m.O, m.G)
        self.receiving[dst] = time + m.g + rest * m.G
        if not m.duplex:
            self.cpu[dst] = message.taken
        key = message.src, dst, message.tag
        if not self.posted[key]:
            self.unexpected[key].append(message)
            return None
        self._meet(time, dst, self.posted[key].pop(0), message)
        return None

    def _recv(self, time: int, serial: int, rank: int, place: int) -> None:
        op = self.ranks[rank][place]
        self._starts(rank, place)
        key = op.peer, rank, op.tag
        if not self.unexpected[key]:
            self.posted[key].append(place)
            return
        message = self.unexpected[key].pop(0)
        message.taken = max(time, message.taken)
        self._meet(time, rank, place, message)

    def _meet(self, time: int, rank: int, place: int, message: _Message) -> None:
        """A message and its receive have met; the sender of a large one may go on."""
        if self.machine.duplex:
            self.done[rank] = max(self.done[rank], message.taken)
            heappush(self.events, (message.taken, next(self.serial), "end", rank, place))
        else:
            self._ends(rank, place)
        if message.nbytes > self.machine.S:
            src = message.src
            self.cpu[src], self.sending[src] = (
                max(self.cpu[src], time),
                max(self.sending[src], time),
            )
            self._ends(src, message.place)
