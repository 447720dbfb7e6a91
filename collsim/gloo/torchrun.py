"""Ranks that `torchrun` has started, on one machine or many.

Every one of them runs the same command line. Rank 0 carries it out, and gives the others orders;
these obey until it ends. Orders and answers travel through torchrun's own store, beside the
connections whose bytes are counted. That torchrun ends all ranks when one of them dies is its part.
"""

import pickle
import platform
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any, Final

from collsim.errors import ExecutionError, ExecutionUnavailable, ScenarioError
from collsim.gloo.availability import import_torch
from collsim.gloo.clocks import clock_name, offset_to_rank_0
from collsim.gloo.group import RankGroup
from collsim.gloo.progress import Self
from collsim.gloo.ranks import perform, spell_error
from collsim.gloo.traffic import own_connections
from collsim.gloo.watch import GRACE, blames_a_peer

PIECE: Final = 4 << 20
"""Bytes of a value in torchrun's store, which takes none of more than 8 MiB."""

LOOK_EVERY: Final = 0.002
FOREVER: Final = timedelta(days=365)

Order = tuple[Any, ...]
"""What a rank is to do: ("join", timeout), ("work", function, arguments), ("leave",), ("end",)."""

Answer = tuple[str, Any]
"""("answer", what came of it) or ("raised", (the error in a line, its traceback))."""


@contextmanager
def torchrun_leader() -> "Iterator[Leader | None]":
    """What rank 0 leads the other ranks with; None in these, once they have obeyed to the end.

    Raises:
        ExecutionUnavailable: There is no gloo in this torch.
    """
    import torch.distributed as dist

    kinds = import_torch()
    if isinstance(kinds, str):
        raise ExecutionUnavailable(f"real gloo runs need torch with gloo: {kinds}")
    store, rank, n_ranks = next(dist.rendezvous("env://"))  # type: ignore[attr-defined]
    mail = Mail(store)
    me = Member(mail, rank, n_ranks)
    if rank != 0:
        obey(me)
        yield None
        return
    leader = Leader(me, kinds)
    try:
        yield leader
    finally:
        leader.give([("end",)] * n_ranks)


def obey(me: "Member") -> None:
    """Do what rank 0 orders until it ends."""
    for number in count():
        order = me.mail.take(f"order {number} {me.rank}")
        if order == ("end",):
            return
        me.mail.put(f"answer {number} {me.rank}", me.do(order))


@dataclass(frozen=True)
class Mail:
    """Values of any size between ranks, through a store that takes small ones."""

    store: Any

    def put(self, key: str, value: object) -> None:
        """Leave a value for the one that takes it."""
        body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        starts = range(0, len(body), PIECE)
        for start in starts:
            self.store.set(f"{key} {start}", body[start : start + PIECE])
        self.store.set(key, str(len(body)))

    def has(self, key: str) -> bool:
        """Whether there is a value to take."""
        return bool(self.store.check([key]))

    def take(self, key: str) -> Any:
        """Wait for a value, and take it away."""
        self.store.wait([key], FOREVER)
        starts = range(0, int(self.store.get(key)), PIECE)
        body = b"".join(self.store.get(f"{key} {start}") for start in starts)
        for each in (key, *(f"{key} {start}" for start in starts)):
            self.store.delete_key(each)
        return pickle.loads(body)


@dataclass
class StoreBoard:
    """A board for ranks of several machines; see `collsim.gloo.progress.Board`.

    Attributes:
        store: A part of torchrun's store that belongs to one group.
        rank: This rank.
        clocks: Each rank's clock.
        doing: What this rank does.
        met: How often it has met the others.
        offset: Nanoseconds from its clock to rank 0's.
    """

    store: Any
    rank: int
    clocks: tuple[str, ...] = ()
    doing: str = ""
    met: int = 0
    offset: int = 0

    def note(self, rank: int, text: str) -> None:
        """Keep it here: to tell the others would take time within what is measured."""
        self.doing = text

    def meet(self, rank: int, n_ranks: int, timeout: float) -> None:
        """Wait until every rank has met as often.

        Raises:
            TimeoutError: A rank has not come in time.
        """
        self.met += 1
        if self.store.add(f"came {self.met}", 1) == n_ranks:
            self.store.set(f"met {self.met}", "")
        deadline = time.monotonic() + timeout
        while not self.store.check([f"met {self.met}"]):
            if time.monotonic() > deadline:
                raise TimeoutError("timed out waiting for the others to come this far")
            time.sleep(LOOK_EVERY / 4)

    def agree(self) -> None:
        """Measure how far this clock is from rank 0's."""
        self.offset = offset_to_rank_0(self.rank, self.clocks)

    def now(self) -> int:
        """Rank 0's clock (ns), as far as this rank knows it."""
        return time.monotonic_ns() + self.offset


@dataclass
class Member:
    """A rank that does what rank 0 orders, or is rank 0.

    Attributes:
        mail: Where orders come from.
        rank: Which it is.
        n_ranks: How many ranks torchrun has started.
        part: What it is in the group that it has joined.
        groups: Numbers for the groups to come.
    """

    mail: Mail
    rank: int
    n_ranks: int
    part: Self | None = None
    groups: Iterator[int] = field(default_factory=count)

    def do(self, order: Order) -> Answer:
        """Carry out an order; what came of it."""
        board = None
        try:
            match order:
                case ("join", timeout):
                    return "answer", self._join(timeout)
                case ("work", function, arguments):
                    assert self.part is not None
                    board = self.part.board
                    return "answer", perform(self.part, function, arguments)
                case _:
                    self._leave()
                    return "answer", None
        except Exception as error:
            where = f" (last seen: {board.doing})" if isinstance(board, StoreBoard) else ""
            return "raised", (spell_error(error) + where, traceback.format_exc())

    def _join(self, timeout: float) -> tuple[str, str]:
        """Form a group with the others; the names of this rank's machine and clock."""
        import torch.distributed as dist

        foreign = frozenset(ends for ends, _ in own_connections())
        prefix = f"group {next(self.groups)}"
        store = dist.PrefixStore(prefix, self.mail.store)  # type: ignore[attr-defined]
        board = StoreBoard(store, self.rank)
        limit = timedelta(seconds=timeout)
        dist.init_process_group(
            "gloo", store=store, rank=self.rank, world_size=self.n_ranks, timeout=limit
        )
        clocks: list[str] = [""] * self.n_ranks
        dist.all_gather_object(clocks, clock_name())
        board.clocks = tuple(clocks)
        self.part = Self(self.rank, self.n_ranks, timeout, board, foreign)
        return platform.node(), clock_name().partition(" ")[0]

    def _leave(self) -> None:
        import torch.distributed as dist

        self.part = None
        if dist.is_initialized():
            dist.destroy_process_group()


class Leader:
    """Rank 0, which gives orders to all ranks and obeys them itself.

    Args:
        me: This rank.
        itemsizes: Bytes of an element of each of torch's types, by its name.

    Attributes:
        n_ranks: How many ranks torchrun has started.
    """

    def __init__(self, me: Member, itemsizes: dict[str, int]) -> None:
        self._me = me
        self._itemsizes = itemsizes
        self._numbers = count()
        self.n_ranks = me.n_ranks

    @contextmanager
    def group(self, n_ranks: int, *, timeout: float) -> Iterator[RankGroup]:
        """Let the ranks form a group; one at a time.

        Args:
            n_ranks: How many ranks are wanted: all.
            timeout: Seconds that joining may take, and each piece of work.

        Raises:
            ScenarioError: torchrun has started another number of them.
            ExecutionError: A rank hung or raised.
        """
        if n_ranks != self.n_ranks:
            raise ScenarioError(
                f"torchrun has started {self.n_ranks}, so there must be {self.n_ranks}, "
                f"got {n_ranks}",
                "ranks",
            )

        def work(function: str, arguments: Sequence[dict[str, Any]]) -> list[Any]:
            return self._order([("work", function, own) for own in arguments], timeout)

        places = self._order([("join", timeout)] * n_ranks, timeout)
        machines = tuple(node for node, _ in places) if len(set(places)) > 1 else ()
        group = RankGroup(work, self._itemsizes, n_ranks, machines)
        try:
            yield group
        finally:
            if not group.over:  # after a failure ranks may be stuck; torchrun ends them
                group.over = "this group has ended; open a new group"
                self._order([("leave",)] * n_ranks, timeout)

    def give(self, orders: Sequence[Order]) -> int:
        """Leave each other rank its order; their number."""
        number = next(self._numbers)
        for rank in range(1, self.n_ranks):
            self._me.mail.put(f"order {number} {rank}", orders[rank])
        return number

    def _order(self, orders: Sequence[Order], timeout: float) -> list[Any]:
        """Let every rank do its part, and wait for all answers.

        Raises:
            ExecutionError: A rank did not answer in time, or raised.
        """
        number = self.give(orders)
        deadline = time.monotonic() + timeout
        answers = {0: self._me.do(orders[0])}
        # Rank 0 may have waited that long for a peer itself: the others' errors are still to come.
        deadline = max(deadline, time.monotonic()) + GRACE
        while len(answers) < self.n_ranks and time.monotonic() < deadline:
            for rank in range(1, self.n_ranks):
                if rank not in answers and self._me.mail.has(f"answer {number} {rank}"):
                    answers[rank] = self._me.mail.take(f"answer {number} {rank}")
            if any(kind == "raised" for kind, _ in answers.values()):
                deadline = min(deadline, time.monotonic() + GRACE)
            time.sleep(LOOK_EVERY)
        raised = {rank: told for rank, (kind, told) in answers.items() if kind == "raised"}
        silent = set(range(self.n_ranks)) - set(answers)
        if raised or silent:
            raise _blame(raised, silent, timeout)
        return [answers[rank][1] for rank in range(self.n_ranks)]


def _blame(raised: dict[int, tuple[str, str]], silent: set[int], timeout: float) -> ExecutionError:
    """Name the rank that is the cause: by an error of its own, or by silence, while others wait."""
    own = [rank for rank in sorted(raised) if not blames_a_peer(raised[rank][0])]
    rank = next(iter([*own, *sorted(silent), *sorted(raised)]))
    what, log = raised.get(rank, (f"did not answer within {timeout:g} s", ""))
    failed = ExecutionError(f"rank {rank} {what}")
    if log:
        failed.add_note(log)
    return failed
