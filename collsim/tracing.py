"""Run a rank program once for every rank and channel, and make its schedule.

Here the mistakes of a program surface, each as a `ScheduleError` that names rank, step, peer and
chunk, so that whoever wrote the program can mend it.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, GeneratorType
from typing import Any

import numpy as np

from collsim.errors import ScheduleError
from collsim.ordering import ordered
from collsim.program import ALL, Algorithm, Collective, Program, Rank, Recv, Send, segmented
from collsim.schedule import Ints, Schedule, Source, Steps, spell_chunks

MAX_MESSAGES = 2_000_000
"""Messages that one trace may have unless the caller raises the limit."""


def trace(
    collective: Collective,
    algorithm: Algorithm | Program,
    n_ranks: int,
    *,
    root: int = 0,
    segments: int = 1,
    max_messages: int = MAX_MESSAGES,
    **parameters: object,
) -> Schedule:
    """Make the schedule of `algorithm`.

    Args:
        collective: What the algorithm must achieve; says which chunks a rank holds at the start.
        algorithm: A row of a table of algorithms, or a bare program (one channel, `segments`
            chunks a block).
        n_ranks: Number of ranks, at least 1.
        root: Root rank, 0 for collectives without a root.
        segments: Into how many pieces a segmented algorithm cuts a block.
        max_messages: Give up beyond this many sends.
        parameters: The program's own parameters.

    Raises:
        ValueError: `n_ranks`, `root` or `segments` are out of range.
        ScheduleError: The program is not made for `n_ranks`, or makes a mistake.
    """
    if not isinstance(algorithm, Algorithm):
        algorithm = Algorithm(algorithm, chunks=segmented)
    name = getattr(algorithm.program, "__name__", "program")
    _check_arguments(collective, algorithm, name, n_ranks, root, segments)
    blocks = collective.blocks(n_ranks)
    n_chunks = blocks * algorithm.chunks(n_ranks, segments)
    recorder = _Recorder(n_chunks, n_ranks, max_messages)
    for rank in range(n_ranks):
        held = collective.before(rank, n_ranks, root, n_chunks)
        for channel in range(algorithm.channels):
            me = Rank(rank, n_ranks, root, n_chunks, channel, algorithm.channels)
            recorder.run(algorithm.program, me, parameters, held)
    steps = recorder.steps()
    sends, recvs = recorder.sends.columns(), recorder.recvs.columns()
    order = _match(steps, sends, recvs)
    schedule = Schedule(
        collective=collective,
        algorithm=name,
        n_ranks=n_ranks,
        root=root,
        n_chunks=n_chunks,
        n_channels=algorithm.channels,
        src=steps.rank[sends.step],
        dst=sends.peer,
        channel=steps.channel[sends.step],
        first_chunk=sends.first,
        chunk_count=sends.count,
        src_step=sends.step,
        dst_step=recvs.step[order],
        steps=steps,
    )
    return ordered(schedule)


def _check_arguments(
    collective: Collective, algorithm: Algorithm, name: str, n_ranks: int, root: int, segments: int
) -> None:
    if n_ranks < 1:
        raise ValueError(f"n_ranks must be at least 1, got {n_ranks}")
    if not 0 <= root < n_ranks:
        raise ValueError(f"root must be a rank, 0 to {n_ranks - 1}, got {root}")
    if root and not collective.rooted:
        raise ValueError(f"{collective.name} has no root, got root {root}")
    if segments < 1:
        raise ValueError(f"segments must be at least 1, got {segments}")
    if not algorithm.ranks.allows(n_ranks):
        raise ScheduleError(f"{name} needs {algorithm.ranks.text}, got {n_ranks}")


@dataclass(slots=True)
class _Columns:
    """One side of all messages, as numpy arrays."""

    peer: Ints
    first: Ints
    count: Ints
    step: Ints


def _ints() -> "array[int]":
    return array("q")


@dataclass(slots=True)
class _Side:
    """One side of all messages, as they are recorded."""

    peer: "array[int]" = field(default_factory=_ints)
    first: "array[int]" = field(default_factory=_ints)
    count: "array[int]" = field(default_factory=_ints)
    step: "array[int]" = field(default_factory=_ints)

    def append(self, peer: int, first: int, count: int, step: int) -> None:
        self.peer.append(peer)
        self.first.append(first)
        self.count.append(count)
        self.step.append(step)

    def columns(self) -> _Columns:
        columns = (self.peer, self.first, self.count, self.step)
        return _Columns(*(np.array(column, np.int64) for column in columns))


class _Recorder:
    """Runs programs, checks each step as it is yielded, and keeps the operations in columns."""

    def __init__(self, n_chunks: int, n_ranks: int, max_messages: int) -> None:
        self.n_chunks = n_chunks
        self.n_ranks = n_ranks
        self.max_messages = max_messages
        self.sends, self.recvs = _Side(), _Side()
        self.rank, self.channel, self.previous = _ints(), _ints(), _ints()
        self.line, self.source = _ints(), _ints()
        self.label: list[str] = []
        self.sources: dict[CodeType, int] = {}

    def run(
        self, program: Program, me: Rank, parameters: dict[str, object], initial: range
    ) -> None:
        """Record what `program` does for one rank and channel."""
        name = getattr(program, "__name__", "program")
        try:
            steps: Any = program(me, **parameters)
        except Exception as error:
            raise ScheduleError(f"{name} fails for rank {me.rank}: {error!r}") from error
        if not isinstance(steps, GeneratorType):
            raise ScheduleError(
                f"{name} gives {type(steps).__name__} for rank {me.rank}; "
                "a program is a generator function: it yields steps"
            )
        held = bytearray(self.n_chunks)
        held[initial.start : initial.stop] = b"\x01" * len(initial)
        position = 0
        while (step := self._next(name, me, position, steps)) is not None:
            where = f"{name}, rank {me.rank}, step {position}"
            self._step(where, me, step, held, position)
            self._note_source(steps)
            position += 1

    @staticmethod
    def _next(name: str, me: Rank, position: int, steps: Iterator[object]) -> object | None:
        """The next step, None at the end."""
        try:
            step = next(steps)
        except StopIteration:
            return None
        except Exception as error:
            raise ScheduleError(
                f"{name} fails for rank {me.rank} after {position} steps: {error!r}"
            ) from error
        return () if step is None else step

    def _step(self, where: str, me: Rank, step: object, held: bytearray, position: int) -> None:
        operations = step if isinstance(step, tuple) else (step,)
        label = ""
        number = len(self.label)
        received: list[range] = []
        sent: list[range] = []
        for operation in operations:
            if isinstance(operation, str):
                label = operation
                continue
            if not isinstance(operation, Send | Recv):
                raise ScheduleError(f"{where}: yields {operation!r}, not a Send or Recv")
            chunks = self._chunks(where, operation)
            if isinstance(operation, Send):
                self._check_peer(where, me, operation, operation.dst)
                if len(chunks) and held.find(0, chunks.start, chunks.stop) >= 0:
                    self._not_held(where, operation, chunks, held)
                self.sends.append(operation.dst, chunks.start, len(chunks), number)
                sent.append(chunks)
            else:
                self._check_peer(where, me, operation, operation.src)
                self.recvs.append(operation.src, chunks.start, len(chunks), number)
                received.append(chunks)
        if not sent and not received:
            raise ScheduleError(f"{where}: yields nothing to send or receive")
        if len(sent) + len(received) > 1 and received:
            _check_overlaps(where, self.n_chunks, sent, received)
        for chunks in received:
            held[chunks.start : chunks.stop] = b"\x01" * len(chunks)
        if len(self.sends.peer) + len(self.recvs.peer) > 2 * self.max_messages:
            raise ScheduleError(
                f"{where}: more than {self.max_messages:,} messages so far; "
                "does the program end? If it should be so large, raise max_messages"
            )
        self.rank.append(me.rank)
        self.channel.append(me.channel)
        self.previous.append(number - 1 if position else -1)
        self.label.append(label)

    def _chunks(self, where: str, operation: Send | Recv) -> range:
        chunks = operation.chunks
        if isinstance(chunks, int) and 0 <= chunks < self.n_chunks:
            return range(chunks, chunks + 1)
        if chunks is ALL:
            return range(self.n_chunks)
        if isinstance(chunks, range) and chunks.step == 1:
            if 0 <= chunks.start <= chunks.stop <= self.n_chunks:
                return chunks
            if len(chunks) == 0:
                return range(0)
        allowed = f"an index below {self.n_chunks}, a range of step 1 within it, or ALL"
        raise ScheduleError(f"{where}: {operation!r}: chunks must be {allowed}")

    def _check_peer(self, where: str, me: Rank, operation: Send | Recv, peer: object) -> None:
        if not isinstance(peer, int) or not 0 <= peer < self.n_ranks:
            raise ScheduleError(f"{where}: {operation!r}: ranks are 0 to {self.n_ranks - 1}")
        if peer == me.rank:
            raise ScheduleError(f"{where}: {operation!r}: a rank cannot message itself")

    @staticmethod
    def _not_held(where: str, operation: Send, chunks: range, held: bytearray) -> None:
        missing = held.find(0, chunks.start, chunks.stop)
        raise ScheduleError(
            f"{where}: sends chunk {missing} to rank {operation.dst} before it holds it "
            "(a step sends what earlier steps of its channel received, or what was there at first)"
        )

    def _note_source(self, steps: "GeneratorType[Any, Any, Any]") -> None:
        """Note which line yielded the step, in the innermost generator."""
        while isinstance(steps.gi_yieldfrom, GeneratorType):
            steps = steps.gi_yieldfrom
        frame = steps.gi_frame
        self.line.append(frame.f_lineno if frame is not None else 0)
        self.source.append(self.sources.setdefault(steps.gi_code, len(self.sources)))

    def steps(self) -> Steps:
        columns = (self.rank, self.channel, self.previous, self.line, self.source)
        rank, channel, previous, line, source = (np.array(c, np.int64) for c in columns)
        sources = tuple(Source(code.co_filename, code.co_name) for code in self.sources)
        return Steps(rank, channel, previous, self.label, line, source, sources)


def _check_overlaps(where: str, n_chunks: int, sent: list[range], received: list[range]) -> None:
    """Refuse steps that receive a chunk twice, or send what they are receiving."""
    arriving = bytearray(n_chunks)
    for chunks in received:
        twice = arriving.find(1, chunks.start, chunks.stop)
        if twice >= 0:
            raise ScheduleError(f"{where}: receives chunk {twice} twice at once")
        arriving[chunks.start : chunks.stop] = b"\x01" * len(chunks)
    for chunks in sent:
        torn = arriving.find(1, chunks.start, chunks.stop)
        if torn >= 0:
            raise ScheduleError(f"{where}: sends chunk {torn} while receiving it")


def _match(steps: Steps, sends: _Columns, recvs: _Columns) -> Ints:
    """For each send the receive that takes it: in order for each (src, dst, channel)."""
    n_channels = int(steps.channel.max(initial=0)) + 1
    n_ranks = int(steps.rank.max(initial=0)) + 1
    send_key = (steps.rank[sends.step] * n_ranks + sends.peer) * n_channels
    recv_key = (recvs.peer * n_ranks + steps.rank[recvs.step]) * n_channels
    send_key += steps.channel[sends.step]
    recv_key += steps.channel[recvs.step]
    by_send = np.argsort(send_key, kind="stable")
    by_recv = np.argsort(recv_key, kind="stable")
    shorter = min(len(by_send), len(by_recv))
    paired = send_key[by_send[:shorter]] == recv_key[by_recv[:shorter]]
    if len(by_send) != len(by_recv) or not paired.all():
        keys, send_counts = np.unique(send_key, return_counts=True)
        n_sent = dict(zip(keys.tolist(), send_counts.tolist(), strict=True))
        keys, recv_counts = np.unique(recv_key, return_counts=True)
        n_expected = dict(zip(keys.tolist(), recv_counts.tolist(), strict=True))
        for key in sorted(n_sent.keys() | n_expected.keys()):
            sent, expected = n_sent.get(key, 0), n_expected.get(key, 0)
            if sent > expected:
                _unanswered(steps, sends, int(np.flatnonzero(send_key == key)[expected]), "send")
            if expected > sent:
                _unanswered(steps, recvs, int(np.flatnonzero(recv_key == key)[sent]), "receive")
    order = np.empty(len(by_send), np.int64)
    order[by_send] = by_recv
    unequal = (sends.first != recvs.first[order]) | (sends.count != recvs.count[order])
    unequal &= (sends.count > 0) | (recvs.count[order] > 0)
    if unequal.any():
        send = int(np.flatnonzero(unequal)[0])
        recv = int(order[send])
        step, other = int(recvs.step[recv]), int(sends.step[send])
        raise ScheduleError(
            f"{_at(steps, step)}: expects {_spell(recvs, recv)} from rank {steps.rank[other]}, "
            f"got {_spell(sends, send)} (sent by {_at(steps, other)})"
        )
    return order


def _unanswered(steps: Steps, side: _Columns, index: int, verb: str) -> None:
    step, peer = int(side.step[index]), int(side.peer[index])
    channel = f" on channel {steps.channel[step]}" if steps.channel.max() else ""
    missing = "receives it" if verb == "send" else "sends it"
    way = "to" if verb == "send" else "from"
    raise ScheduleError(
        f"{_at(steps, step)}: {verb}s {_spell(side, index)} {way} rank {peer}{channel}, "
        f"which never {missing}"
    )


def _at(steps: Steps, step: int) -> str:
    return f"rank {steps.rank[step]}, step {steps.position[step]} ({steps.where(step)})"


def _spell(side: _Columns, index: int) -> str:
    first = int(side.first[index])
    return spell_chunks(range(first, first + int(side.count[index])))
