"""A set of ranks that runs one piece of work after the other, wherever they live."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from collsim.errors import ExecutionError, ScheduleError
from collsim.gloo.plans import Execution, initial_memory, opaque_schedule, plan_ranks, put_together
from collsim.schedule import Schedule
from collsim.verification import Buffers

Work = Callable[[str, Sequence[dict[str, Any]]], list[Any]]
"""Runs ``module:function`` on every rank with its own arguments; what each returned."""


class RankGroup:
    """Ranks that are ready to work. Made by `GlooServer.group`, or under torchrun.

    Args:
        work: Runs ``module:function`` on every rank with that rank's arguments, and returns
            what each gave; raises ExecutionError if one failed.
        itemsizes: Bytes of an element of each of torch's types, by its name.
        n_ranks: How many.
        machines: Name of each rank's machine; () if all are on this one.

    Attributes:
        n_ranks: How many.
        machines: As above.
        over: Why they can work no more, "" if they can.
    """

    def __init__(
        self,
        work: Work,
        itemsizes: Mapping[str, int],
        n_ranks: int,
        machines: tuple[str, ...] = (),
    ) -> None:
        self._work = work
        self._itemsizes = itemsizes
        self.n_ranks = n_ranks
        self.machines = machines
        self.over = ""

    def run(self, function: str, arguments: Sequence[dict[str, Any]]) -> list[Any]:
        """Run ``module:function(self, **arguments[rank])`` on every rank.

        Raises:
            ExecutionError: A rank died, hung or raised; the group is of no more use then.
        """
        if self.over:
            raise ExecutionError(self.over)
        if len(arguments) != self.n_ranks:
            raise ValueError(f"got arguments for {len(arguments)} ranks of {self.n_ranks}")
        self.over = "a piece of work of this group has failed, or is under way; open a new group"
        answers = self._work(function, arguments)
        self.over = ""
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
            ValueError: Schedule, group, memory and arguments do not fit together.
            ScheduleError: The schedule deadlocks under rendezvous, and so it does on gloo.
            ExecutionError: A rank died, hung or raised.
        """
        self._check(schedule.n_ranks, repetitions)
        if schedule.rendezvous_deadlock:
            raise ScheduleError(f"gloo would hang: {schedule.rendezvous_deadlock}")
        memory = initial_memory(schedule, nbytes, seed, inputs)
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
            ValueError: Schedule, group, memory and arguments do not fit together.
            ExecutionError: A rank died, hung or raised.
        """
        self._check(schedule.n_ranks, repetitions)
        sizes = self._itemsizes
        if dtype not in sizes:
            raise ValueError(f"dtype must be one of {', '.join(sizes)}, got {dtype!r}")
        if nbytes % sizes[dtype]:
            raise ValueError(f"nbytes must be a multiple of {dtype}'s {sizes[dtype]}, got {nbytes}")
        memory = initial_memory(schedule, nbytes, seed, inputs)
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
