"""Open MPI: the fixed rules of its component coll/tuned, which is the default in Open MPI 4.1.

Read from `ompi/mca/coll/tuned/coll_tuned_decision_fixed.c`; the rules stand there since 4.1.0, and
in 5.0 as well. What the algorithms do is from `ompi/mca/coll/base/coll_base_bcast.c`,
`coll_base_scatter.c` and `coll_base_allgather.c`. Two things make its cliffs: the segment size
given is always 0, so that nothing is pipelined and a "chain" passes whole messages on, and the
fan-out of a chain is 1.

Since 5.0 the component coll/han (priority 35, tuned has 30) goes first where a communicator spans
hosts on which several ranks are; it is not emulated.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from collsim.libraries.choice import (
    MANY,
    Bands,
    Call,
    Library,
    LibraryChoice,
    find_band,
    is_power_of_two,
)

VERSION: Final = "4.1"
K: Final = 1024
M: Final = K * K

HAN: Final = "since 5.0, coll/han goes before coll/tuned here"
_choice = partial(LibraryChoice, "open_mpi", VERSION)


@dataclass(frozen=True, slots=True)
class Native:
    """One of Open MPI's numbered algorithms, and what it is in collsim."""

    name: str
    algorithm: str
    note: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)


TOGETHER: Final = "Open MPI starts all of a rank's sends together"

LINEAR: Final = Native("basic_linear", "flat_at_once")
CHAIN: Final = Native("chain", "chain", "with one segment")
BROADCASTS: Final[Mapping[int, Native]] = {
    1: LINEAR,
    2: CHAIN,
    3: Native("pipeline", "chain", "with one segment"),
    4: Native(
        "split_binary_tree", "split_binary", "Open MPI's ranks send to one child after the other"
    ),
    5: Native("binary_tree", "binary", "Open MPI's last level is filled from both sides"),
    6: Native("binomial", "gloo", f"the tree of binomial, but {TOGETHER}, as gloo does"),
    7: Native("knomial", "knomial", f"{TOGETHER}, knomial those of one level", {"k": 4}),
    8: Native("scatter_allgather", "scatter_rd_all_gather"),
}
"""Broadcasts by number; 9, scatter_allgather_ring, is never chosen."""

BROADCAST_RULES: Final[tuple[tuple[int, Bands], ...]] = (
    (
        4,
        ((32, 3), (256, 5), (512, 3), (K, 7), (32 * K, 1), (128 * K, 5), (256 * K, 2),
         (512 * K, 1), (M, 6), (MANY, 5)),
    ),
    (8, ((64, 5), (128, 6), (2 * K, 5), (8 * K, 6), (M, 1), (MANY, 2))),
    (16, ((8, 7), (64, 5), (4 * K, 7), (16 * K, 5), (32 * K, 6), (MANY, 1))),
    (32, ((4 * K, 7), (M, 6), (MANY, 8))),
    (64, ((2 * K, 6), (MANY, 7))),
    (128, ((MANY, 7),)),
    (256, ((2, 6), (16 * K, 5), (32 * K, 1), (64 * K, 5), (MANY, 7))),
    (1024, ((16 * K, 7), (32 * K, 4), (MANY, 7))),
    (2048, ((512 * K, 7), (MANY, 8))),
    (4096, ((256 * K, 7), (MANY, 8))),
    (MANY, ((8 * K, 7), (16 * K, 5), (256 * K, 7), (MANY, 8))),
)  # fmt: skip
"""Ends of bands of ranks, then of bytes of the message, each with the algorithm's number."""

SCATTERS: Final[Mapping[int, Native]] = {
    1: Native("basic_linear", "linear"),
    2: Native("binomial", "binomial"),
    3: Native("linear_nb", "gloo"),
}
"""Scatters by number."""

SCATTER_RULES: Final[tuple[tuple[int, Bands], ...]] = (
    (4, ((2, 3), (128 * K, 1), (256 * K, 3), (MANY, 1))),
    (8, ((2 * K, 2), (4 * K, 1), (8 * K, 2), (32 * K, 1), (M, 3), (MANY, 1))),
    (16, ((16 * K, 2), (M, 3), (MANY, 1))),
    (32, ((16 * K, 2), (32 * K, 1), (MANY, 3))),
    (64, ((512, 2), (8 * K, 3), (16 * K, 2), (MANY, 3))),
    (MANY, ((512, 2), (MANY, 3))),
)
"""The same for scatter; bytes of one rank's block."""

RING: Final = Native("ring", "ring")
BRUCK: Final = Native("bruck", "bruck")
ALL_GATHERS: Final[Mapping[int, Native]] = {
    2: BRUCK,
    3: Native("recursive_doubling", "recursive_doubling"),
    4: RING,
    5: Native("neighbor", "neighbour_exchange"),
    6: Native("two_proc", "recursive_doubling"),
}
"""All_gathers by number; 1, linear, is never chosen."""

ALL_GATHER_RULES: Final[tuple[tuple[int, Bands], ...]] = (
    (2, ((MANY, 3),)),
    (3, ((MANY, 6),)),
    (32, ((MANY, 3),)),
    (64, ((K, 3), (64 * K, 5), (MANY, 4))),
    (128, ((512, 3), (64 * K, 5), (MANY, 4))),
    (256, ((512, 3), (128 * K, 5), (512 * K, 4), (M, 5), (MANY, 4))),
    (512, ((32, 3), (128, 2), (K, 3), (128 * K, 5), (512 * K, 4), (M, 5), (MANY, 4))),
    (1024, ((64, 3), (256, 2), (2 * K, 3), (MANY, 5))),
    (2048, ((4, 3), (8, 2), (16, 3), (32, 2), (256, 3), (512, 2), (4 * K, 3), (MANY, 5))),
    (4096, ((32, 2), (128, 3), (512, 2), (4 * K, 3), (MANY, 5))),
    (MANY, ((2, 3), (8, 2), (16, 3), (512, 2), (4 * K, 3), (MANY, 5))),
)
"""The same for all_gather; bytes of one rank's block."""


def broadcast(call: Call) -> LibraryChoice:
    """What MPI_Bcast would do."""
    number, rule = fixed_rule(call, BROADCAST_RULES)
    native, p, count = (
        BROADCASTS.get(number, LINEAR),
        call.n_ranks,
        call.nbytes // call.element_bytes,
    )
    if number == 8 and count < p:
        return decided(call, LINEAR, f"{rule}, but fewer elements than ranks: basic_linear")
    if number == 8 and not is_power_of_two(p):
        lacks = "collsim's scatter_rd_all_gather needs a power of two ranks, Open MPI's does not"
        return _choice(None, native.name, rule, note=lacks)
    if number == 4 and count < 2:
        return decided(call, CHAIN, f"{rule}, but one element only: chain")
    return decided(call, native, rule)


def scatter(call: Call) -> LibraryChoice:
    """What MPI_Scatter would do."""
    number, rule = fixed_rule(call, SCATTER_RULES)
    return decided(call, SCATTERS[number], rule)


def all_gather(call: Call) -> LibraryChoice:
    """What MPI_Allgather would do."""
    number, rule = fixed_rule(call, ALL_GATHER_RULES)
    if number == 3 and not is_power_of_two(call.n_ranks):
        return decided(call, BRUCK, f"{rule}, but not a power of two ranks: bruck")
    if number == 5 and call.n_ranks % 2:
        return decided(call, RING, f"{rule}, but an odd number of ranks: ring")
    return decided(call, ALL_GATHERS[number], rule)


def fixed_rule(call: Call, rules: tuple[tuple[int, Bands], ...]) -> tuple[int, str]:
    """The number of the algorithm, and the rule in words."""
    place, ranks = find_band(
        tuple((end, place) for place, (end, _) in enumerate(rules)), call.n_ranks, "p"
    )
    number, nbytes = find_band(rules[place][1], call.nbytes, "n")
    return number, f"{ranks} and {nbytes}: algorithm {number}"


def decided(call: Call, native: Native, rule: str) -> LibraryChoice:
    """A choice of what collsim has, unless there is nothing to send."""
    if call.nbytes == 0:
        return _choice(None, "", "n = 0: returns at once", note="nothing is sent")
    is_hans = call.shares_hosts and call.n_hosts > 1
    note = "; ".join(text for text in (native.note, HAN if is_hans else "") if text)
    return _choice(native.algorithm, native.name, rule, parameters=native.parameters, note=note)


OPEN_MPI: Final = Library(
    "Open MPI, coll/tuned",
    VERSION,
    {"broadcast": broadcast, "scatter": scatter, "all_gather": all_gather},
)
"""Open MPI's rules."""
