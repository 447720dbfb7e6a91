"""Broadcast that knows which ranks share a host."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from collsim.collectives.broadcast.trees import one_per_receiver
from collsim.program import ALL, Algorithm, Rank, Recv, Send, Setting, Step, check_members


def two_level(me: Rank, groups: Sequence[Sequence[int]] | None = None) -> Iterator[Step]:
    """Inform one rank of each host down a binomial tree, then the others inside each host.

    `groups` are the ranks of each host. The root leads its host, the first rank leads another. With
    H hosts of g ranks there are ⌈log2 H⌉ + ⌈log2 g⌉ rounds, and H − 1 messages between hosts, the
    least there can be. Without `groups`, all ranks are on one host.

    Rounds: at most 2 * L - 1
    Messages: p - 1
    Bytes sent by the root: at most (2 * L - 1) * n
    Bytes sent by another rank: at most (2 * L - 2) * n
    Makespan: at most (2 * L - 1) * (alpha + n * beta)
    Good when: several ranks share a host, and messages between hosts are slower than inside.
    Poor when: every rank has a host of its own: it is `binomial` then; or the message is large.
    Also called: hierarchical or SMP-aware broadcast; MPICH's smp; SMPI's SMP_binomial.
    Reference: Karonis, de Supinski, Foster, Gropp, Lusk, Bresnahan: Exploiting Hierarchy in
        Parallel Computer Networks to Optimize Collective Operation Performance, IPDPS 2000.
    """
    if groups is None:
        groups = [range(me.n_ranks)]
    check_members([rank for group in groups for rank in group], me.n_ranks)
    hosts = _beginning_with(me.root, [list(group) for group in groups if group])
    leaders = [host[0] for host in hosts]
    mine = next(host for host in hosts if me.rank in host)
    if me.rank == mine[0]:
        yield from _binomial(me, leaders, "between hosts")
    yield from _binomial(me, mine, "inside the host")


def _beginning_with(root: int, hosts: list[list[int]]) -> list[list[int]]:
    """The hosts, turned so that the root's is first, and its ranks so that the root is."""
    first = next(i for i, host in enumerate(hosts) if root in host)
    own = hosts[first]
    at = own.index(root)
    return [own[at:] + own[:at], *hosts[first + 1 :], *hosts[:first]]


def _binomial(me: Rank, ranks: list[int], where: str) -> Iterator[Step]:
    """The tree of `binomial` among `ranks`, the first of which is informed."""
    here = ranks.index(me.rank)
    first = here.bit_length()
    if here > 0:
        parent = ranks[here - (1 << (first - 1))]
        yield Recv(parent, ALL), f"{where}, rank {me.rank} hears of rank {parent}"
    for i in range(first, (len(ranks) - 1).bit_length()):
        if here + (1 << i) < len(ranks):
            child = ranks[here + (1 << i)]
            yield Send(child, ALL), f"{where}, rank {me.rank} tells rank {child}"


def groups_of(setting: Setting) -> dict[str, object]:
    """The ranks of each host."""
    return {"groups": setting.groups}


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "two_level": Algorithm(two_level, messages=one_per_receiver, prepare=groups_of),
}
"""Broadcast in two levels."""
