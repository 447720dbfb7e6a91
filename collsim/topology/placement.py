"""Which host each rank runs on."""

import difflib
from collections.abc import Sequence

from collsim.errors import ScenarioError

HOW = ("block", "round_robin")
"""The ways to place ranks by rule."""


def place(
    hosts: Sequence[str],
    n_ranks: int,
    how: str | Sequence[str] = "block",
    ranks_per_host: int = 1,
) -> tuple[str, ...]:
    """Give each rank a host.

    Args:
        hosts: The hosts of the topology, in order.
        n_ranks: How many ranks there are.
        how: ``block``: the first `ranks_per_host` ranks on the first host, the next on the second.
            ``round_robin``: rank r on host r modulo the number of hosts. Or the host of each rank
            by name, which may repeat hosts as it likes.
        ranks_per_host: Places on each host; a list of names does not heed it.

    Returns:
        The host of each rank.

    Raises:
        ValueError: `n_ranks` or `ranks_per_host` is below 1.
        ScenarioError: More ranks than places, or a name that is unknown.

    >>> place(["h0", "h1"], 4, ranks_per_host=2), place(["h0", "h1"], 4, "round_robin", 2)
    (('h0', 'h0', 'h1', 'h1'), ('h0', 'h1', 'h0', 'h1'))
    """
    if n_ranks < 1:
        raise ValueError(f"n_ranks must be at least 1, got {n_ranks}")
    if ranks_per_host < 1:
        raise ValueError(f"ranks_per_host must be at least 1, got {ranks_per_host}")
    if not isinstance(how, str):
        return _place_by_name(hosts, n_ranks, how)
    if how not in HOW:
        raise ScenarioError(
            f"{how!r} is unknown; use {' or '.join(HOW)}, or a list with the host of each rank",
            "placement",
        )
    places = len(hosts) * ranks_per_host
    if n_ranks > places:
        raise ScenarioError(
            f"{n_ranks} ranks do not fit on {_count(len(hosts), 'host')} × {ranks_per_host} a "
            f"host = {_count(places, 'place')}; use at most {places} ranks, a topology with more "
            "hosts, or a larger ranks_per_host",
            "ranks",
        )
    if how == "block":
        return tuple(hosts[rank // ranks_per_host] for rank in range(n_ranks))
    return tuple(hosts[rank % len(hosts)] for rank in range(n_ranks))


def _place_by_name(hosts: Sequence[str], n_ranks: int, names: Sequence[str]) -> tuple[str, ...]:
    known = set(hosts)
    for rank, name in enumerate(names):
        if not isinstance(name, str) or name not in known:
            near = difflib.get_close_matches(str(name), hosts, 1)
            hint = f", did you mean {near[0]}?" if near else ""
            raise ScenarioError(
                f"rank {rank}: {name!r} is no host of the topology{hint}; it has {_some(hosts)}",
                "placement",
            )
    if len(names) < n_ranks:
        raise ScenarioError(
            f"{n_ranks} ranks, but placement names {_count(len(names), 'host')}; name one for "
            "each rank, or use fewer ranks",
            "ranks",
        )
    if len(names) > n_ranks:
        raise ScenarioError(
            f"it names {_count(len(names), 'host')} for {_count(n_ranks, 'rank')}; "
            "name one for each rank",
            "placement",
        )
    return tuple(names)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _some(names: Sequence[str]) -> str:
    if len(names) <= 6:
        return ", ".join(names)
    return f"{', '.join(names[:3])}, … {names[-1]} ({len(names)} in all)"


def groups(placement: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The ranks of each host, in order of their first rank.

    >>> groups(("h0", "h1", "h0"))
    ((0, 2), (1,))
    """
    by_host: dict[str, list[int]] = {}
    for rank, host in enumerate(placement):
        by_host.setdefault(host, []).append(rank)
    return tuple(tuple(ranks) for ranks in by_host.values())
