"""What each rank must do for a schedule, and what the ranks saw put together again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from collsim.gloo.ranks import PlannedStep, Record
from collsim.gloo.traffic import matrix_of
from collsim.program import Collective
from collsim.schedule import Ints, Schedule, Source, Steps
from collsim.timeline import UNOBSERVED, Timeline
from collsim.verification import Buffers, initial_buffers


@dataclass(frozen=True)
class Execution:
    """A real run.

    Attributes:
        timeline: When things happened, of the repetition with the median makespan. Time zero is
            when the last rank left the barrier; sends and receives are seen when their wait
            returned, which for a send may be before delivery.
        buffers: Each rank's memory at the end, as `verify` gives it.
        makespans: Seconds that each repetition took.
        wire: Bytes that were received between each pair, int64[repetitions, n_ranks, n_ranks]: row
            sends, column receives; headers and control messages included.
    """

    timeline: Timeline
    buffers: Buffers
    makespans: tuple[float, ...]
    wire: Ints

    @property
    def makespan(self) -> float:
        """The median repetition's makespan (s)."""
        return self.timeline.makespan


def initial_memory(schedule: Schedule, nbytes: int, seed: int, inputs: Buffers | None) -> Buffers:
    """What each rank has at the start: `inputs` if given, else `initial_buffers`.

    Raises:
        ValueError: `inputs` have the wrong form: a slice of a short one would be cut quietly.
    """
    if nbytes < 0:
        raise ValueError(f"nbytes must be at least 0, got {nbytes}")
    if inputs is None:
        return initial_buffers(schedule, nbytes, seed)
    total = int(schedule.offsets(nbytes)[-1])
    found = [f"{own.dtype}{[*own.shape]}" for own in inputs]
    if found != [f"uint8[{total}]"] * schedule.n_ranks:
        raise ValueError(f"inputs must be {schedule.n_ranks} times uint8[{total}], got {found}")
    return inputs


def plan_ranks(schedule: Schedule, nbytes: int) -> list[list[list[PlannedStep]]]:
    """What each rank does on each channel: [rank][channel] → steps.

    Receives of one step stand in the order of transfer numbers, in which the sends of one pair and
    channel match them.
    """
    steps, offsets = schedule.steps, schedule.offsets(nbytes)
    first = offsets[schedule.first_chunk]
    end = offsets[schedule.first_chunk + schedule.chunk_count]
    sends: list[list[tuple[int, int, int, int]]] = [[] for _ in range(len(steps))]
    receives: list[list[tuple[int, int, int, int]]] = [[] for _ in range(len(steps))]
    columns = (schedule.src, schedule.dst, schedule.src_step, schedule.dst_step, first, end)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for transfer, (src, dst, src_step, dst_step, begin, stop) in enumerate(rows):
        sends[src_step].append((transfer, dst, begin, stop))
        receives[dst_step].append((transfer, src, begin, stop))
    plans: list[list[list[PlannedStep]]] = [
        [[] for _ in range(schedule.n_channels)] for _ in range(schedule.n_ranks)
    ]
    places = zip(steps.rank.tolist(), steps.channel.tolist(), steps.position.tolist(), strict=True)
    for step, (rank, channel, position) in enumerate(places):
        which = f"step {position}" + (f" of channel {channel}" if schedule.n_channels > 1 else "")
        text = f"{which}: {steps.label[step] or steps.where(step)}"
        planned = PlannedStep(step, text, tuple(receives[step]), tuple(sends[step]))
        plans[rank][channel].append(planned)
    return plans


def opaque_schedule(collective: Collective, n_ranks: int, root: int) -> Schedule:
    """A schedule of one step a rank and no known messages: all that a native run shows."""
    none, zeros = np.zeros(0, np.int64), np.zeros(n_ranks, np.int64)
    steps = Steps(
        rank=np.arange(n_ranks),
        channel=zeros,
        previous=zeros - 1,
        label=[f"torch's {collective.name}"] * n_ranks,
        line=zeros,
        source=zeros,
        sources=(Source("torch", collective.name),),
    )
    columns: dict[str, Any] = dict.fromkeys(
        ("src", "dst", "channel", "first_chunk", "chunk_count", "src_step", "dst_step", "round"),
        none,
    )
    return Schedule(
        collective=collective,
        algorithm="torch's native",
        n_ranks=n_ranks,
        root=root,
        n_chunks=collective.blocks(n_ranks),
        n_channels=1,
        steps=steps,
        **columns,
    )


def put_together(
    schedule: Schedule, nbytes: int, engine: str, records: list[list[Record]]
) -> Execution:
    """One execution from what the ranks saw: records[rank][repetition]."""
    timelines = [_timeline(schedule, nbytes, engine, run) for run in zip(*records, strict=True)]
    makespans = [timeline.makespan for timeline in timelines]
    median = int(np.argsort(makespans, kind="stable")[(len(makespans) - 1) // 2])
    buffers = tuple(own[median].buffer for own in records)
    wire = np.stack([matrix_of([r.received for r in run]) for run in zip(*records, strict=True)])
    return Execution(timelines[median], buffers, tuple(makespans), wire)


def _timeline(schedule: Schedule, nbytes: int, engine: str, records: Sequence[Record]) -> Timeline:
    zero = max(record.zero for record in records)
    unknown: Ints = np.full(len(schedule), UNOBSERVED, np.int64)
    left, done = unknown.copy(), unknown.copy()
    begin, end = (np.zeros(len(schedule.steps), np.int64) for _ in range(2))

    def since_zero(nanoseconds: npt.ArrayLike) -> Any:
        """Picoseconds since the last rank left the barrier; what others did before counts as 0."""
        return np.maximum(np.asarray(nanoseconds, np.int64) - zero, 0) * 1000

    for record in records:
        for step, began, ended in record.steps:
            begin[step], end[step] = since_zero(began), since_zero(ended)
        for transfer, seen in record.left:
            left[transfer] = since_zero(seen)
        for transfer, seen in record.done:
            done[transfer] = since_zero(seen)
    return Timeline(
        schedule=schedule,
        kind="measured",
        engine=engine,
        nbytes=nbytes,
        released=unknown,
        started=unknown,
        left=left,
        arrived=unknown,
        done=done,
        step_begin=begin,
        step_end=end,
    )
