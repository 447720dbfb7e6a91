"""The caller's side: start the server and groups of ranks, hand out work, put records together."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from collsim.errors import ExecutionError, ExecutionUnavailable, ScheduleError
from collsim.gloo.plans import Execution, opaque_schedule, plan_ranks, put_together
from collsim.gloo.server import Failure
from collsim.gloo.wire import Closed, receive, send
from collsim.schedule import Schedule
from collsim.verification import Buffers, initial_buffers

TIMEOUT: Final = 30.0
"""Seconds that a group may take to start, and each piece of work."""


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
                f"real runs need torch with gloo ({why}); install collsim with the extra [gloo]"
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
        return put_together(schedule, nbytes, "gloo, isend/irecv", records)

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
        return put_together(opaque, nbytes, "gloo, torch's native", records)

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
