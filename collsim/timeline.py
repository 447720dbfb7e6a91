"""When everything happened: the one type that simulations and real runs give.

Times are int64 picoseconds from the start; `UNOBSERVED` stands where nothing was observed (real
runs know no hops, native collectives only begin and finish) and becomes NaN in seconds.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import numpy.typing as npt

from collsim.errors import SimulationStalled
from collsim.schedule import Ints, Schedule

if TYPE_CHECKING:
    import pandas as pd

UNOBSERVED: Final = -1
"""In a column of picoseconds: not observed."""

Floats = npt.NDArray[np.float64]


def seconds(picoseconds: npt.ArrayLike) -> Floats:
    """Picoseconds as seconds, NaN where unobserved."""
    column = np.asarray(picoseconds, np.int64)
    return np.where(column == UNOBSERVED, np.nan, column / 1e12)


@dataclass(frozen=True)
class Hops:
    """The links that messages crossed.

    Attributes:
        first: Where each transfer's hops begin in the arrays below, int64[n + 1].
        link: Link of each hop, int64[hops].
        start: When the message takes the link (ps), int64[hops].
        end: When its last byte has passed it (ps), int64[hops].
        service_ps: How long the message takes on an idle link (ps), int64[hops].
        latency_ps: Latency of the link (ps), int64[hops].
        link_names: Name of each link.
    """

    first: Ints
    link: Ints
    start: Ints
    end: Ints
    service_ps: Ints
    latency_ps: Ints
    link_names: tuple[str, ...]


@dataclass(frozen=True)
class Timeline:
    """A run of a schedule, predicted or measured. Columns are int64 picoseconds.

    Attributes:
        schedule: What was run.
        kind: ``predicted`` or ``measured``.
        engine: What made it.
        nbytes: Bytes of the collective's argument.
        released: When each transfer could start, [n].
        started: When its first byte took the first link, [n].
        left: When its last byte had left the sender, [n].
        arrived: When its last byte had come in, [n].
        done: When its receive was done, [n].
        step_begin: When each step began, [n_steps].
        step_end: When it ended, [n_steps].
        hops: Links crossed, None if nobody knows.
    """

    schedule: Schedule
    kind: Literal["predicted", "measured"]
    engine: str
    nbytes: int
    released: Ints
    started: Ints
    left: Ints
    arrived: Ints
    done: Ints
    step_begin: Ints
    step_end: Ints
    hops: Hops | None = None

    @cached_property
    def finish_ps(self) -> Ints:
        """When each rank was done with all its steps (ps), int64[n_ranks]."""
        finish = np.zeros(self.schedule.n_ranks, np.int64)
        np.maximum.at(finish, self.schedule.steps.rank, self.step_end)
        return finish

    @property
    def finish(self) -> Floats:
        """When each rank was done (s), float64[n_ranks]."""
        return seconds(self.finish_ps)

    @property
    def makespan_ps(self) -> int:
        """Picoseconds from the start until the last rank is done."""
        return int(self.finish_ps.max())

    @property
    def makespan(self) -> float:
        """Seconds from the start until the last rank is done."""
        return self.makespan_ps / 1e12

    @property
    def root_return(self) -> float:
        """Seconds until the root was done; in a broadcast it does not wait for the others."""
        return float(self.finish[self.schedule.root])

    @property
    def algbw(self) -> float:
        """Bytes of the whole message over the makespan (bytes/s), as nccl-tests count it.

        The whole message is the tensor of a broadcast; all blocks for scatter and all_gather.
        """
        total = self.schedule.collective.nbytes_total(self.schedule.n_ranks, self.nbytes)
        return total / self.makespan if self.makespan_ps else float("nan")

    @property
    def busbw(self) -> float:
        """`algbw` times the factor that makes it comparable with a link's bandwidth (bytes/s).

        1 for broadcast, (p − 1)/p for scatter and all_gather (nccl-tests, doc/PERFORMANCE.md).
        """
        n_ranks = self.schedule.n_ranks
        blocks = self.schedule.collective.blocks(n_ranks)
        return self.algbw * ((n_ranks - 1) / n_ranks if blocks > 1 else 1.0)

    @cached_property
    def waiting(self) -> Floats:
        """Seconds before its finish in which no message of a rank was under way, [n_ranks]."""
        schedule = self.schedule
        ranks = np.concatenate([schedule.src, schedule.dst])
        begins = np.concatenate([self.started, self.started])
        ends = np.concatenate([self.left, self.done])
        order = np.lexsort((begins, ranks))
        idle = self.finish_ps.copy()
        reached = [0] * schedule.n_ranks
        for rank, begin, end in zip(
            ranks[order].tolist(), begins[order].tolist(), ends[order].tolist(), strict=True
        ):
            if end > reached[rank]:
                idle[rank] -= end - max(begin, reached[rank])
                reached[rank] = end
        unknown = UNOBSERVED in self.started or UNOBSERVED in ends
        return np.full(len(idle), np.nan) if unknown else seconds(np.maximum(idle, 0))

    @cached_property
    def link_busy_ps(self) -> Ints:
        """Picoseconds that each link's messages take of it, int64[n_links]; empty if unknown."""
        if self.hops is None:
            return np.zeros(0, np.int64)
        busy = np.zeros(len(self.hops.link_names), np.int64)
        np.add.at(busy, self.hops.link, self.hops.service_ps)
        return busy

    @cached_property
    def link_use(self) -> dict[str, float]:
        """Fraction of the makespan that each used link is taken, busiest first."""
        if self.hops is None or not self.makespan_ps:
            return {}
        used = np.flatnonzero(self.link_busy_ps)
        order = used[np.argsort(-self.link_busy_ps[used], kind="stable")]
        names = self.hops.link_names
        return {names[i]: float(self.link_busy_ps[i]) / self.makespan_ps for i in order.tolist()}

    @property
    def bottleneck(self) -> str:
        """The link that is taken longest, the first of them; "" if unknown or none is."""
        return next(iter(self.link_use), "")

    def to_frame(self) -> "pd.DataFrame":
        """One row a transfer: who, what, and the times in seconds."""
        import pandas as pd  # late: half a second

        schedule = self.schedule
        return pd.DataFrame(
            {
                "src": schedule.src,
                "dst": schedule.dst,
                "channel": schedule.channel,
                "first_chunk": schedule.first_chunk,
                "chunk_count": schedule.chunk_count,
                "round": schedule.round,
                "nbytes": schedule.message_bytes(self.nbytes),
                **{
                    name: seconds(getattr(self, name))
                    for name in ("released", "started", "left", "arrived", "done")
                },
                "label": [schedule.steps.label[step] for step in schedule.src_step.tolist()],
            }
        ).rename_axis("transfer")


def refuse_stall(schedule: Schedule, done: Ints, step_begin: Ints) -> None:
    """Say how many messages were never delivered, and where the first of them stands.

    Raises:
        SimulationStalled: Always.
    """
    missing = int(np.flatnonzero(done == UNOBSERVED)[0])
    ends = {"sender": schedule.src_step[missing], "receiver": schedule.dst_step[missing]}
    begun = [who for who, step in ends.items() if step_begin[step] != UNOBSERVED]
    lacking = f"only its {begun[0]} has begun it" if begun else "neither end has begun it"
    raise SimulationStalled(
        f"{schedule.algorithm}: {int((done != UNOBSERVED).sum())} of {len(schedule)} messages were "
        f"delivered, then all ranks waited; {schedule[missing]} never moved ({lacking})"
    )
