"""Exact makespans of our own semantics on an ideal star, in integer picoseconds.

The simulation gives the same to the picosecond; nothing of it, nor of traced schedules, is used
here, so either checks the other. A form costs little enough for thousands of ranks.

Every form holds under rendezvous. Where a rank receives from several others, an eager message may
overtake another one on its way to a link; `exact_ps` gives None then. It happens to `circulant`
and `split_binary` mostly, and to `scatter_rd_all_gather` where blocks are a few bytes. Algorithms
on several channels have no exact form, and are not in the table.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

from collsim.collectives import COLLECTIVES
from collsim.collectives.broadcast.optimal import ROUNDING, TEXTBOOK_MACHINE, greedy_tree
from collsim.cost.blocks import (
    bruck,
    gather_broadcast,
    neighbour_exchange,
    recursive_doubling,
    ring,
    scatter_at_once,
    scatter_binomial,
    scatter_rd_all_gather,
    scatter_ring_all_gather,
)
from collsim.cost.ideal import Case, Ideal
from collsim.cost.pipelined import binary, chain, circulant, split_binary

Form = Callable[[Case], int | None]


def exact_ps(
    collective: str,
    algorithm: str,
    n_ranks: int,
    nbytes: int,
    n_chunks_per_block: int,
    ideal: Ideal,
    root: int = 0,
    parameters: Mapping[str, object] = {},
) -> int | None:
    """The makespan (ps) on an ideal star; None if there is no exact form.

    Args:
        collective: Its name.
        algorithm: The algorithm's name in the collective's table.
        n_ranks: Number of ranks, each on a host of its own.
        nbytes: Bytes of the collective's argument.
        n_chunks_per_block: Chunks that the argument is cut into (`Algorithm.chunks`).
        ideal: The network.
        root: Root rank.
        parameters: The algorithm's own parameters.

    Raises:
        ValueError: A number is out of range, or the algorithm is not made for so many ranks.
        ScenarioError: It would take weeks.
    """
    case = Case(n_ranks, nbytes, n_chunks_per_block, ideal, root, parameters)
    form = EXACT.get((collective, algorithm))
    if form is None:
        return None
    rule = COLLECTIVES[collective].algorithms[algorithm].ranks
    if not rule.allows(n_ranks):
        raise ValueError(f"{algorithm} needs {rule.text}, got {n_ranks}")
    return form(case)


# Trees: a rank's sends leave one after the other, whether it starts them in turn or all at once,
# since each child has only been waiting for this message.


def flat(case: Case) -> int:
    """Copies leave one after the other, the last one arrives α later: α + (p − 1)nβ."""
    if case.n_ranks == 1:
        return 0
    return case.alpha + (case.n_ranks - 1) * case.takes(case.nbytes)


def binomial(case: Case) -> int:
    """Number v is informed after as many α as it has one bits, and as many nβ as it has bits.

    So max((L − 1)(α + nβ), (1 + ⌊log2(p − 2^(L − 1))⌋)α + L·nβ); L(α + nβ) for p = 2^L.
    """
    return _binomial(case.n_ranks, case.alpha, case.takes(case.nbytes))


def _binomial(p: int, alpha: int, takes: int) -> int:
    if p == 1:
        return 0
    rounds = (p - 1).bit_length()
    ones = (p - (1 << (rounds - 1))).bit_length()  # at most, among numbers with all the bits
    return max((rounds - 1) * (alpha + takes), ones * alpha + rounds * takes)


def binomial_halving(case: Case) -> int:
    """The last rank of the root's largest full subtree is the latest: ⌊log2 p⌋α + L·nβ."""
    p = case.n_ranks
    return (p.bit_length() - 1) * case.alpha + (p - 1).bit_length() * case.takes(case.nbytes)


def knomial(case: Case) -> int:
    """Down the tree; a full one of D levels takes D(α + (k − 1)nβ)."""
    k = cast(int, case.parameters.get("k", 4))
    if k < 2:
        raise ValueError(f"k must be at least 2, got {k}")

    def shares(size: int) -> Iterator[int]:
        """Ranks of each child's part, where the parent's has `size`."""
        span = 1
        while span * k < size:
            span *= k
        while span:
            end = min(size, span * k)
            yield from (min(span, end - first) for first in range(span, end, span))
            span //= k

    return _down(case, case.n_ranks, shares)


def postal(case: Case) -> int:
    """Down the tree: a rank in charge of others keeps a part, and leaves the rest to its child."""
    latency = cast(float, case.parameters.get("latency", 2.0))
    informed = greedy_tree(case.n_ranks, latency, 1.0)[1]

    def shares(size: int) -> Iterator[int]:
        while size > 1:
            kept = max(1, bisect_right(informed, informed[size - 1] - 1.0 + ROUNDING))
            yield size - kept
            size = kept

    return _down(case, case.n_ranks, shares)


def logp_optimal(case: Case) -> int:
    """Down the given tree: a child is informed α + k·nβ after its parent, if it is the k-th."""
    parents = cast(Sequence[int] | None, case.parameters.get("parents"))
    if parents is None:
        textbook = TEXTBOOK_MACHINE.flight(0), TEXTBOOK_MACHINE.occupancy(0)
        parents = greedy_tree(case.n_ranks, *textbook)[0]
    children: list[list[int]] = [[] for _ in range(case.n_ranks)]
    for child in range(1, case.n_ranks):
        children[parents[child]].append(child)
    return _down(case, 0, children.__getitem__)


def _down(case: Case, root: int, children: Callable[[int], Iterable[int]]) -> int:
    """When the last of a tree is informed, each node's children being informed in turn."""
    takes, latest = case.takes(case.nbytes), 0
    waiting = [(0, root)]
    while waiting:
        time, node = waiting.pop()
        for k, child in enumerate(children(node), start=1):
            informed = time + case.alpha + k * takes
            latest = max(latest, informed)
            waiting.append((informed, child))
    return latest


def two_level(case: Case) -> int:
    """`binomial` among the leaders of hosts, then, after a leader's sends, inside each host."""
    alpha, takes = case.alpha, case.takes(case.nbytes)
    groups = cast(Sequence[Sequence[int]] | None, case.parameters.get("groups"))
    hosts = [group for group in groups or [range(case.n_ranks)] if len(group)]
    first = next(i for i, host in enumerate(hosts) if case.root in host)
    latest = 0
    for leader, host in enumerate(hosts[first:] + hosts[:first]):
        bits = leader.bit_length()
        informed = leader.bit_count() * alpha + bits * takes
        sends = sum(leader + (1 << i) < len(hosts) for i in range(bits, len(hosts).bit_length()))
        inside = sends * takes + _binomial(len(host), alpha, takes) if len(host) > 1 else 0
        latest = max(latest, informed + inside)
    return latest


EXACT: Final[Mapping[tuple[str, str], Form]] = {
    ("broadcast", "flat"): flat,
    ("broadcast", "flat_at_once"): flat,
    ("broadcast", "binomial"): binomial,
    ("broadcast", "gloo"): binomial,
    ("broadcast", "binomial_halving"): binomial_halving,
    ("broadcast", "knomial"): knomial,
    ("broadcast", "postal"): postal,
    ("broadcast", "logp_optimal"): logp_optimal,
    ("broadcast", "two_level"): two_level,
    ("broadcast", "chain"): chain,
    ("broadcast", "binary"): binary,
    ("broadcast", "split_binary"): split_binary,
    ("broadcast", "circulant"): circulant,
    ("broadcast", "scatter_ring_all_gather"): scatter_ring_all_gather,
    ("broadcast", "scatter_rd_all_gather"): scatter_rd_all_gather,
    ("scatter", "linear"): scatter_at_once,
    ("scatter", "gloo"): scatter_at_once,
    ("scatter", "binomial"): scatter_binomial,
    ("all_gather", "ring"): ring,
    ("all_gather", "recursive_doubling"): recursive_doubling,
    ("all_gather", "bruck"): bruck,
    ("all_gather", "neighbour_exchange"): neighbour_exchange,
    ("all_gather", "gather_broadcast"): gather_broadcast,
}
"""Exact forms by collective and algorithm."""
