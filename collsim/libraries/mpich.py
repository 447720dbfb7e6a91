"""MPICH: what its default, `auto`, selects, with device ch4.

Read from `maint/tuning/coll/mpir/generic.json` as it was in MPICH 4.3.0 (the algorithms of a flat
communicator), `maint/tuning/coll/ch4/generic.json` (how communicators whose ranks share hosts are
composed of smaller ones), `maint/tuning/coll/ch4/posix_generic.json` (inside a host), and
`src/mpid/ch4/src/ch4_coll_impl.h`. Bounds are inclusive in the first file and not in the second.

A large message of a number of ranks that is no power of two always takes scatter + ring, however
many ranks there are: 30 s instead of 1 s on 6144 ranks (pmodels/mpich issue 7330). Pull request
7332 looks at the bytes a rank gets as well; choices that it changes have a note.
"""

from functools import partial
from typing import Final

from collsim.libraries.choice import Call, Library, LibraryChoice, is_power_of_two

VERSION: Final = "4.3.0"

FEW_RANKS: Final = 8
SHORT: Final = 12_288
LONG: Final = 524_288
ALL_GATHER_SHORT: Final = 81_920
SHORT_BLOCK: Final = 12_288
"""Bytes a rank up to which pull request 7332 does not scatter, p not being a power of two."""

LONG_BLOCK: Final = 65_536
"""Bytes a rank up to which it gathers by recursive doubling, p being one."""

_choice = partial(LibraryChoice, "mpich", VERSION)


def broadcast(call: Call) -> LibraryChoice:
    """What MPI_Bcast would do."""
    p, n = call.n_ranks, call.nbytes
    if n == 0:
        return _choice(None, "", "n = 0: returns at once", note="nothing is sent")
    if call.shares_hosts and p < FEW_RANKS:
        return _composed(call, "alpha", f"ranks share hosts, p < {FEW_RANKS}")
    if call.shares_hosts and n < SHORT:
        return _composed(call, "alpha", f"ranks share hosts, n < {SHORT:,}")
    if call.shares_hosts and is_power_of_two(p) and n < LONG:
        return _composed(call, "beta", f"ranks share hosts, p = 2^k, {SHORT:,} ≤ n < {LONG:,}")
    return _flat(p, n)


def _flat(p: int, n: int) -> LibraryChoice:
    """A communicator of which each message goes through the network, or is treated as if."""
    if p < FEW_RANKS or n <= SHORT:
        rule = f"p < {FEW_RANKS}" if p < FEW_RANKS else f"p ≥ {FEW_RANKS}, n ≤ {SHORT:,}"
        return _choice("binomial_halving", "binomial", rule)
    if is_power_of_two(p) and n <= LONG:
        rule = f"p ≥ {FEW_RANKS}, p = 2^k, {SHORT:,} < n ≤ {LONG:,}"
        return _choice("scatter_rd_all_gather", "scatter_recursive_doubling_allgather", rule)
    name = "scatter_ring_all_gather", "scatter_ring_allgather"
    if is_power_of_two(p):
        rule, other = f"p ≥ {FEW_RANKS}, p = 2^k, n > {LONG:,}", "recursive doubling"
        is_changed = n <= LONG_BLOCK * p
    else:
        rule, other = f"p ≥ {FEW_RANKS}, p ≠ 2^k, n > {SHORT:,}", "binomial"
        is_changed = n <= SHORT_BLOCK * p
    note = f"pull request 7332 changes this to {other}, at {n / p:,.0f} B a rank"
    return _choice(*name, rule, note=note if is_changed else "")


def _composed(call: Call, composition: str, rule: str) -> LibraryChoice:
    """Between the hosts' first ranks as in a communicator of their own, then inside each host."""
    inside = "MPICH copies through shared memory inside a host (release_gather)"
    native = f"composition {composition}"
    if call.n_hosts == 1:
        return _choice(None, native, rule, note=f"{inside}; collsim has no such algorithm")
    between = _flat(call.n_hosts, call.nbytes)
    native = f"{native}: {between.native_name}, then release_gather"
    if between.algorithm != "binomial_halving":
        lacks = f"collsim has no two levels with {between.algorithm} between hosts"
        return _choice(None, native, rule, note=lacks)
    groups = tuple(group for group in call.groups if group)
    note = f"{inside}, two_level sends messages there; MPICH's leaders are each host's first rank"
    return _choice("two_level", native, rule, parameters={"groups": groups}, note=note)


def scatter(call: Call) -> LibraryChoice:
    """What MPI_Scatter would do."""
    if call.nbytes == 0:
        return _choice(None, "", "n = 0: returns at once", note="nothing is sent")
    return _choice("binomial", "binomial", "always")


def all_gather(call: Call) -> LibraryChoice:
    """What MPI_Allgather would do; its rules look at the bytes of all ranks together."""
    p, total = call.n_ranks, call.n_ranks * call.nbytes
    if total == 0:
        return _choice(None, "", "n = 0: returns at once", note="nothing is sent")
    if is_power_of_two(p):
        if total < LONG:
            return _choice("recursive_doubling", "recursive_doubling", f"p = 2^k, p·n < {LONG:,}")
        return _choice("ring", "ring", f"p = 2^k, p·n ≥ {LONG:,}")
    if total < ALL_GATHER_SHORT:
        return _choice("bruck", "brucks", f"p ≠ 2^k, p·n < {ALL_GATHER_SHORT:,}")
    return _choice("ring", "ring", f"p ≠ 2^k, p·n ≥ {ALL_GATHER_SHORT:,}")


MPICH: Final = Library(
    "MPICH, device ch4",
    VERSION,
    {"broadcast": broadcast, "scatter": scatter, "all_gather": all_gather},
)
"""MPICH's rules."""
