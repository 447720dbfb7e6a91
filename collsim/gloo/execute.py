"""The caller's side: start the server and groups of ranks, and hand out work."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from types import TracebackType
from typing import Any, Final

from collsim.errors import ExecutionError, ExecutionUnavailable
from collsim.gloo.forks import spell_exit
from collsim.gloo.group import RankGroup
from collsim.gloo.lab import Shape
from collsim.gloo.outcomes import Fate
from collsim.gloo.plans import Execution
from collsim.gloo.watch import Failure
from collsim.gloo.wire import Closed, Late, encode, receive, send
from collsim.schedule import Schedule

TIMEOUT: Final = 30.0
"""Seconds that a group may take to start, and each piece of work."""

LONGEST_TIMEOUT: Final = 86400.0

IMPORTING: Final = 120.0
"""Seconds that importing torch may take."""

PATIENCE: Final = 5.0
"""Seconds beyond a timeout after which the server itself is taken for stuck."""


class GlooServer:
    """A process that has imported torch and forks ranks. Use it as a context manager.

    It has one group of ranks at a time. Threads that run groups side by side have one each.

    Args:
        prefix: A command to start it with, `namespaces.with_rights()` for groups in a lab.

    Attributes:
        itemsizes: Bytes of an element of each of torch's types, by its name.

    Raises:
        ExecutionUnavailable: There is no torch, no gloo in it, or this is not Linux.
    """

    def __init__(self, prefix: Sequence[str] = ()) -> None:
        if sys.platform != "linux":
            raise ExecutionUnavailable(f"real gloo runs need Linux, this is {sys.platform}")
        places = [place or os.curdir for place in sys.path]
        # It finds the modules that are found here, and no others.
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-P", "-m", "collsim.gloo.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        )
        self.itemsizes: Mapping[str, int] = {}
        self._has_group = Lock()
        self._over = ""

    @property
    def pid(self) -> int:
        """The server's process number."""
        return self._process.pid

    def __enter__(self) -> "GlooServer":
        try:
            found = self._answer(IMPORTING)
        except BaseException:
            self.close()
            raise
        if isinstance(found, str):
            self.close()
            raise ExecutionUnavailable(
                f"real gloo runs need torch with gloo ({found}): pip install 'collsim[gloo]'"
            )
        self.itemsizes = found
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def close(self, patience: float = PATIENCE) -> None:
        """End the server and, with it, its ranks; kill it after `patience` seconds."""
        self._over = self._over or "the process that starts ranks has ended; open a new GlooServer"
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()  # the kernel kills its ranks when it ends
            self._process.wait()

    def ask(self, *request: object, timeout: float = TIMEOUT) -> Any:
        """Send a request to the server and wait for its answer.

        Raises:
            ExecutionError: A rank failed, or the server did.
        """
        body = encode(request)
        if self._over:
            raise ExecutionError(self._over)
        assert self._process.stdin is not None
        # What comes before the answer was read, Ctrl-C say, leaves an answer to nobody behind.
        self._over = "a request was interrupted; open a new GlooServer"
        try:
            send(self._process.stdin.fileno(), body, time.monotonic() + timeout + PATIENCE)
        except (Closed, Late) as error:
            raise self._gone(error, timeout) from None
        answer = self._answer(timeout)
        self._over = ""
        if isinstance(answer, Failure):
            if answer.is_unavailable:
                raise ExecutionUnavailable(answer.what)
            failed = ExecutionError(answer.what)
            if answer.log:
                failed.add_note(answer.log)
            raise failed
        return answer

    def _answer(self, timeout: float) -> Any:
        assert self._process.stdout is not None
        try:
            return receive(self._process.stdout.fileno(), time.monotonic() + timeout + PATIENCE)
        except (Closed, Late) as error:
            raise self._gone(error, timeout) from None

    def _gone(self, error: Closed | Late, timeout: float) -> ExecutionError:
        """What has become of the server, which is closed now."""
        if isinstance(error, Late):
            self.close(patience=0)
            late = f"did not answer within {timeout + PATIENCE:g} s, so it was killed"
            return ExecutionError(f"the process that starts ranks {late}")
        self.close()
        ended = spell_exit(self._process.returncode)
        return ExecutionError(f"the process that starts ranks ended: {ended}")

    @contextmanager
    def group(
        self, n_ranks: int, *, timeout: float = TIMEOUT, lab: Shape | None = None
    ) -> Iterator[RankGroup]:
        """Fork `n_ranks` ranks that form a process group; one group at a time.

        Args:
            n_ranks: How many.
            timeout: Seconds that starting may take, and each piece of work.
            lab: The shaped network that they live in; on loopback if None.

        Raises:
            ValueError: The server has a group already, or an argument is out of range.
            ExecutionUnavailable: This machine makes no lab.
            ExecutionError: A rank died, hung or raised.
        """
        if n_ranks < 1 or not 0 < timeout <= LONGEST_TIMEOUT:
            raise ValueError(
                f"n_ranks and timeout must be positive, the timeout at most {LONGEST_TIMEOUT:g} s, "
                f"got {n_ranks} and {timeout}"
            )
        if not self._has_group.acquire(blocking=False):
            raise ValueError("this server has a group: leave that, or start another GlooServer")

        def work(function: str, arguments: Sequence[dict[str, Any]]) -> list[Any]:
            requests = [encode((function, own)) for own in arguments]
            answers: list[Any] = self.ask("work", requests, timeout, timeout=timeout)
            return answers

        group = RankGroup(work, self.itemsizes, n_ranks)
        try:
            self.ask("group", n_ranks, timeout, lab, timeout=timeout)
            yield group
        finally:
            group.over = "this group has ended; open a new group"
            if self._over:
                self.close(patience=0)
            else:
                self.ask("end")
            self._has_group.release()

    def probe(
        self, function: str, arguments: Sequence[dict[str, Any]], *, patience: float, timeout: float
    ) -> list[Fate]:
        """Let fresh ranks run ``module:function(self, **arguments[rank])``, come what may.

        Args:
            function: What to run.
            arguments: Those of each rank.
            patience: Seconds after which a rank that has said nothing is taken for hung.
            timeout: Seconds that a rank may wait for others.

        Raises:
            ValueError: The server has a group.
            ExecutionError: The ranks could not be started.
        """
        if not self._has_group.acquire(blocking=False):
            raise ValueError("this server has a group: leave that, or start another GlooServer")
        try:
            requests = [encode((function, own)) for own in arguments]
            limit = timeout + patience
            fates: list[Fate] = self.ask("probe", requests, timeout, patience, timeout=limit)
            return fates
        finally:
            self._has_group.release()


@contextmanager
def forked_group(n_ranks: int, *, timeout: float = TIMEOUT) -> Iterator[RankGroup]:
    """Ranks on this machine, with a server of their own; see `GlooServer.group`."""
    with GlooServer() as server, server.group(n_ranks, timeout=timeout) as group:
        yield group


def execute(
    schedule: Schedule, nbytes: int, *, timeout: float = TIMEOUT, **options: Any
) -> Execution:
    """Run a schedule on real gloo ranks that are started for it; see `RankGroup.execute`."""
    with forked_group(schedule.n_ranks, timeout=timeout) as group:
        return group.execute(schedule, nbytes, **options)


def native(
    schedule: Schedule, nbytes: int, *, timeout: float = TIMEOUT, **options: Any
) -> Execution:
    """Run torch's own collective on ranks that are started for it; see `RankGroup.native`."""
    with forked_group(schedule.n_ranks, timeout=timeout) as group:
        return group.native(schedule, nbytes, **options)
