"""The caller's side: start the server and groups of ranks, hand out work, put records together."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collsim.errors import ExecutionError, ExecutionUnavailable, ScheduleError
from collsim.gloo.ranks import PlannedStep, Record
from collsim.gloo.server import Failure
from collsim.gloo.wire import Closed, receive, send
from collsim.program import Collective
from collsim.schedule import Ints, Schedule, Source, Steps
from collsim.timeline import UNOBSERVED, Timeline
from collsim.verification import Buffers, initial_buffers

TIMEOUT: Final = 30.0
"""Seconds that a group may take to start, and each piece of work."""


@dataclass(frozen=True)
class Execution:
    """A real run.

    Attributes:
        timeline: When things happened, of the repetition with the median makespan. Time zero is
            when the last rank left the barrier; sends and receives are seen when their wait
            returned, which for a send may be before delivery.
        buffers: Each rank's memory at the end, as `verify` gives it.
        makespans: Seconds that each repetition took.
    """

    timeline: Timeline
    buffers: Buffers
    makespans: tuple[float, ...]

    @property
    def makespan(self) -> float:
        """The median repetition's makespan (s)."""
        return self.timeline.makespan


class GlooServer:
    """A process that has imported torch and forks ranks. Use it as a context manager.

    Raises:
        ExecutionUnavailable: There is no torch, no gloo in it, or this is not Linux.
    """

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise ExecutionUnavailable(f"real gloo runs need Linux, this is {sys.platform}")
        command = [sys.executable, "-c", "from collsim.gloo.server import main; main()"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )

    @property
    def pid(self) -> int:
        """The server's process number."""
        return self._process.pid

    def __enter__(self) -> "GlooServer":
        try:
            kind, detail = self._answer()
        except BaseException:
            self.close()
            raise
        if kind == "missing" or not detail:
            self.close()
            why = detail or "this torch was built without gloo"
            raise ExecutionUnavailable(
                f"real runs need torch with gloo ({why}); install it with pip install 'collsim[gloo]'"
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the server and, with it, its ranks."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ask(self, *request: object) -> Any:
        """Send a request to the server and wait for its answer.

        Raises:
            ExecutionError: A rank failed, or the server did.
        """
        assert self._process.stdin is not None
        try:
            send(self._process.stdin.fileno(), request)
        except Closed:
            raise ExecutionError("the process that starts ranks has gone") from None
        answer = self._answer()
        if isinstance(answer, Failure):
            where = f" (last seen: {answer.where})" if answer.where else ""
            raise ExecutionError(f"rank {answer.rank} {answer.what}{where}")
        return answer

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        try:
            return receive(self._process.stdout.fileno())
        except Closed:
            code = self._process.wait()
            raise ExecutionError(f"the process that starts ranks ended, exit code {code}") from None

    @contextmanager
    def group(self, n_ranks: int, *, timeout: float = TIMEOUT) -> "Iterator[RankGroup]":
        """Fork `n_ranks` ranks that form a process group; one group at a time.

        Args:
            n_ranks: How many.
            timeout: Seconds that starting may take, and each piece of work.

        Raises:
            ExecutionError: A rank died, hung or raised.
        """
        if n_ranks < 1 or not timeout > 0:
            raise ValueError(f"n_ranks and timeout must be positive, got {n_ranks} and {timeout}")
        folder = Path(tempfile.mkdtemp(prefix="collsim-gloo-"))
        try:
            self.ask("group", n_ranks, timeout, str(folder))
            group = RankGroup(self, n_ranks, timeout)
            yield group
            if not group.is_broken:
                self.ask("end")
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class RankGroup:
    """Ranks that are ready to work. Made by `GlooServer.group`."""

    def __init__(self, server: GlooServer, n_ranks: int, timeout: float) -> None:
        self._server = server
        self.n_ranks = n_ranks
        self.timeout = timeout
        self.is_broken = False

    def run(self, function: str, arguments: Sequence[dict[str, Any]]) -> list[Any]:
        """Run ``module:function(self, **arguments[rank])`` on every rank.

        Raises:
            ExecutionError: A rank died, hung or raised; the group is of no more use then.
        """
        if self.is_broken:
            raise ExecutionError("a rank of this group has failed before; open a new group")
        self.is_broken = True
        answers: list[Any] = self._server.ask("work", function, list(arguments), self.timeout)
        self.is_broken = False
        return answers

    def execute(
        self,
        schedule: Schedule,
        nbytes: int,
        *,
        seed: int = 0,
        repetitions: int = 1,
        inputs: Buffers | None = None,
    ) -> Execution:
        """Run a schedule, step by step, over isend and irecv.

        Args:
            schedule: What to run; it must have as many ranks as the group.
            nbytes: Bytes of the collective's argument.
            seed: Seed of the initial memory (`initial_buffers`).
            repetitions: How often; each starts from the initial memory.
            inputs: The initial memory, if it should be something else.

        Raises:
            ScheduleError: The schedule deadlocks under rendezvous, and so it does on gloo.
            ExecutionError: A rank died, hung or raised.
        """
        self._check(schedule.n_ranks, repetitions)
        if schedule.rendezvous_deadlock:
            raise ScheduleError(f"gloo would hang: {schedule.rendezvous_deadlock}")
        memory = inputs or initial_buffers(schedule, nbytes, seed)
        plans = plan_ranks(schedule, nbytes)
        arguments = [
            {"channels": plan, "memory": own, "repetitions": repetitions}
            for plan, own in zip(plans, memory, strict=True)
        ]
        records = self.run("collsim.gloo.ranks:run_plan", arguments)
        return _together(schedule, nbytes, "gloo, isend/irecv", records)

    def native(
        self,
        schedule: Schedule,
        nbytes: int,
        *,
        dtype: str = "uint8",
        seed: int = 0,
        repetitions: int = 1,
        inputs: Buffers | None = None,
    ) -> Execution:
        """Run torch's own collective on the same memory.

        Args:
            schedule: Says which collective, how many ranks and which root.
            nbytes: Bytes of the collective's argument, a multiple of an element's.
            dtype: Name of torch's element type.
            seed: Seed of the initial memory.
            repetitions: How often.
            inputs: The initial memory, if it should be something else.

        Raises:
            ExecutionError: A rank died, hung or raised.
        """
        self._check(schedule.n_ranks, repetitions)
        memory = inputs or initial_buffers(schedule, nbytes, seed)
        collective = schedule.collective
        arguments = [
            {
                "collective": collective.name,
                "root": schedule.root,
                "dtype": dtype,
                "memory": own,
                "repetitions": repetitions,
            }
            for own in memory
        ]
        records = self.run("collsim.gloo.ranks:run_native", arguments)
        opaque = opaque_schedule(collective, schedule.n_ranks, schedule.root)
        return _together(opaque, nbytes, "gloo, torch's native", records)

    def _check(self, n_ranks: int, repetitions: int) -> None:
        if n_ranks != self.n_ranks:
            raise ValueError(f"the schedule has {n_ranks} ranks, the group {self.n_ranks}")
        if repetitions < 1:
            raise ValueError(f"repetitions must be at least 1, got {repetitions}")


def execute(
    schedule: Schedule, nbytes: int, *, timeout: float = TIMEOUT, **options: Any
) -> Execution:
    """Run a schedule on real gloo ranks that are started for it; see `RankGroup.execute`."""
    with GlooServer() as server, server.group(schedule.n_ranks, timeout=timeout) as group:
        return group.execute(schedule, nbytes, **options)


def native(
    schedule: Schedule, nbytes: int, *, timeout: float = TIMEOUT, **options: Any
) -> Execution:
    """Run torch's own collective on ranks that are started for it; see `RankGroup.native`."""
    with GlooServer() as server, server.group(schedule.n_ranks, timeout=timeout) as group:
        return group.native(schedule, nbytes, **options)


def plan_ranks(schedule: Schedule, nbytes: int) -> list[list[list[PlannedStep]]]:
    """What each rank does on each channel: [rank][channel] → steps.

    Receives of one step stand in the order of transfer numbers, in which the sends of one pair and
    channel match them.
    """
    offsets = schedule.offsets(nbytes).tolist()
    sends: list[list[tuple[int, int, int, int]]] = [[] for _ in range(len(schedule.steps))]
    receives: list[list[tuple[int, int, int, int]]] = [[] for _ in range(len(schedule.steps))]
    for t in schedule:
        first, end = offsets[t.chunks.start], offsets[t.chunks.stop]
        sends[t.src_step].append((t.id, t.dst, first, end))
        receives[t.dst_step].append((t.id, t.src, first, end))
    plans: list[list[list[PlannedStep]]] = [
        [[] for _ in range(schedule.n_channels)] for _ in range(schedule.n_ranks)
    ]
    ranks, channels = schedule.steps.rank.tolist(), schedule.steps.channel.tolist()
    for step, (rank, channel) in enumerate(zip(ranks, channels, strict=True)):
        planned = PlannedStep(step, tuple(receives[step]), tuple(sends[step]))
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
    columns = dict.fromkeys(
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


def _together(
    schedule: Schedule, nbytes: int, engine: str, records: list[list[Record]]
) -> Execution:
    """One execution from what the ranks saw: records[rank][repetition]."""
    timelines = [_timeline(schedule, nbytes, engine, run) for run in zip(*records, strict=True)]
    makespans = [timeline.makespan for timeline in timelines]
    median = int(np.argsort(makespans, kind="stable")[(len(makespans) - 1) // 2])
    buffers = tuple(own[median].buffer for own in records)
    return Execution(timelines[median], buffers, tuple(makespans))


def _timeline(
    schedule: Schedule, nbytes: int, engine: str, records: Sequence[Record]
) -> Timeline:
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
