"""The mistakes as a table: what each does to each of four ranks, and how to do it right.

What is expected was observed with torch's gloo on one machine, many times and under load.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from collsim.gloo import misuse, misuse_order
from collsim.gloo.outcomes import Fate, Kind
from collsim.mistakes import diagnosis

N_RANKS: Final = 4


@dataclass(frozen=True)
class Expected:
    """What may become of a rank.

    Attributes:
        kinds: The kinds of fate that occur; several where ranks race each other.
        value: What its tensor holds, if it returns.
        says: Words in its error, or in what is known of its end.
    """

    kinds: frozenset[Kind]
    value: tuple[float, ...] | None = None
    says: str = ""

    def agrees(self, fate: Fate) -> bool:
        """Whether this is what became of a rank."""
        if fate.kind not in self.kinds:
            return False
        if fate.kind == "returned":
            return tuple(fate.value) == self.value
        return self.says in fate.text


@dataclass(frozen=True)
class Mistake:
    """One mistake.

    Attributes:
        id: Its name on the command line.
        title: What is done wrong, in short.
        work: What ranks execute; its source is the lesson's code.
        outcome: What happens, in short.
        remedy: Why it happens and how to do it right.
        right: What each rank should hold.
        expected: What becomes of each rank.
        diagnose: Makes the same mistake in a program of collsim, and gives what collsim says.
        blind: Why collsim's programs cannot make it, if they cannot.
    """

    id: str
    title: str
    work: Callable[..., Any]
    outcome: str
    remedy: str
    right: tuple[tuple[float, ...], ...]
    expected: tuple[Expected, ...]
    diagnose: Callable[[], str] | None = None
    blind: str = ""


def _holds(*value: float) -> Expected:
    return Expected(frozenset({"returned"}), value)


def _raises(says: str) -> Expected:
    return Expected(frozenset({"raised"}), says=says)


ONES: Final = (1.0,) * 4
WAITS: Final = Expected(frozenset({"timed out", "lost a peer"}))

MISTAKES: Final = (
    Mistake(
        "root-outside",
        "src is no rank of the group",
        misuse.root_outside,
        "every rank raises at once",
        "Ranks count from 0 to world size - 1.",
        (ONES,) * 4,
        (_raises("invalid root rank"),) * 4,
        diagnosis.root_outside,
    ),
    Mistake(
        "rank-missing",
        "a rank never calls the collective",
        misuse_order.rank_missing,
        "its parent in the tree times out, the others return",
        "Every rank of the group must call; no `if rank ...` around a collective.",
        (ONES,) * 4,
        (_holds(*ONES), WAITS, _holds(*ONES), _holds(4, 4, 4, 4)),
        diagnosis.rank_missing,
    ),
    Mistake(
        "bigger-receiver",
        "a receiver's tensor is bigger than the root's",
        misuse.bigger_receiver,
        "silent: the tail keeps its old values",
        "Sizes are not sent along: broadcast the shape first, or agree on it.",
        ((*ONES,), (*ONES,), (*ONES,), (*ONES, 1, 1)),
        (_holds(*ONES),) * 3 + (_holds(*ONES, 4, 4),),
        diagnosis.bigger_receiver,
    ),
    Mistake(
        "smaller-receiver",
        "a receiver's tensor is smaller than the root's",
        misuse.smaller_receiver,
        "the receiver's process aborts, without an exception",
        "Sizes are not sent along: broadcast the shape first, or agree on it.",
        (ONES, ONES, ONES, (1, 1)),
        (
            _holds(*ONES),
            Expected(frozenset({"returned", "lost a peer"}), ONES),
            _holds(*ONES),
            Expected(frozenset({"aborted"}), says="SIGABRT"),
        ),
        diagnosis.smaller_receiver,
    ),
    Mistake(
        "other-type",
        "a receiver's tensor has another element type",
        misuse.other_type,
        "silent: float32's bits are read as int32",
        "Only bytes travel: make every rank's tensor with the same dtype.",
        (ONES,) * 4,
        (_holds(*ONES),) * 3 + (_holds(*(1065353216,) * 4),),
        blind="programs speak of chunks of bytes, which have no element type",
    ),
    Mistake(
        "column",
        "a column of a matrix is broadcast, which is not contiguous",
        misuse.column,
        "silent: memory beside the column is overwritten instead",
        "Hand over `.contiguous()` and copy the result back.",
        ((10, 20, 30, 40), *((10, 2, 30, 4),) * 3),
        (_holds(10, 20, 30, 40), *(_holds(10, 20, 3, 4),) * 3),
        blind="a rank's memory is one row of chunks there, so there are no strides",
    ),
    Mistake(
        "swapped-order",
        "a rank makes two broadcasts of equal size in the other order",
        misuse_order.swapped_order,
        "silent: the contents are exchanged",
        "Collectives are matched by order alone: call them in one order on every rank.",
        ((1, 1, 2, 2),) * 4,
        (_holds(1, 1, 2, 2),) * 3 + (_holds(2, 2, 1, 1),),
        diagnosis.swapped_order,
    ),
    Mistake(
        "list-on-every-rank",
        "scatter_list is given on every rank, not only on the root",
        misuse.list_on_every_rank,
        "the others raise at once, the root times out",
        "Give `blocks if rank == src else None`.",
        ((1,), (2,), (3,), (4,)),
        (WAITS, *(_raises("must NOT be specified"),) * 3),
        blind="programs take no lists: who holds which chunk follows from the collective",
    ),
    Mistake(
        "short-list",
        "all_gather gets a list with a place too few",
        misuse.short_list,
        "every rank raises at once",
        "The list needs a tensor for every rank of the group.",
        ((1, 2, 3, 4),) * 4,
        (_raises("expected length 4, got 3"),) * 4,
        diagnosis.short_list,
    ),
    Mistake(
        "send-before-receive",
        "everyone sends first and receives afterwards",
        misuse_order.send_before_receive,
        "all wait for each other until the timeout",
        "Use isend, or let even ranks send first and odd ranks receive first.",
        ((4,), (1,), (2,), (3,)),
        (WAITS,) * 4,
        diagnosis.send_before_receive,
    ),
    Mistake(
        "list-missing",
        "the root gives scatter no list",
        misuse.list_missing,
        "the root raises at once, the others time out",
        "Give `blocks if rank == src else None`.",
        ((1,), (2,), (3,), (4,)),
        (_raises("must be specified on"), *(WAITS,) * 3),
        blind="programs take no lists: who holds which chunk follows from the collective",
    ),
    Mistake(
        "unequal-list",
        "the blocks that scatter gets are not of equal size",
        misuse.unequal_list,
        "the root raises at once, the others time out",
        "scatter needs equal blocks: pad them, or send each with its size.",
        ((1, 1),) * 4,
        (_raises("invalid tensor size at index 1"), *(WAITS,) * 3),
        blind="all blocks have one number of chunks there",
    ),
)
