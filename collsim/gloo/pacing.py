"""Bandwidth between pairs of ranks without any rights: the kernel paces each rank's own sockets.

Linux spreads what a TCP socket sends so that it keeps below the socket's ``SO_MAX_PACING_RATE``
(socket(7), tcp(7)). That shapes a link for each pair, on loopback as well, where no namespaces can
be made. A switch whose links pairs share it cannot shape.
"""

import socket
from typing import Any, Final

from collsim.gloo.group import RankGroup
from collsim.gloo.progress import Ends, Self
from collsim.gloo.traffic import own_connections

SO_MAX_PACING_RATE: Final = 47
"""Of Linux's asm-generic/socket.h; Python's socket module has no name for it."""


def pace(group: RankGroup, pairs: tuple[tuple[float, ...], ...]) -> None:
    """Give every pair of ranks its rate.

    Args:
        group: Ranks on this machine.
        pairs: Bytes/s from rank to rank, [src][dst].

    Raises:
        ExecutionError: A rank died, hung or raised.
    """
    ends = group.run("collsim.gloo.pacing:list_connections", [{}] * group.n_ranks)
    owner = {one: rank for rank, mine in enumerate(ends) for one in mine}
    arguments: list[dict[str, Any]] = [
        {"rates": {(own, peer): round(pairs[rank][owner[peer, own]]) for own, peer in mine}}
        for rank, mine in enumerate(ends)
    ]
    group.run("collsim.gloo.pacing:set_rates", arguments)


def list_connections(me: Self) -> list[Ends]:
    """Both addresses of each of the rank's connections."""
    return [ends for ends, _ in own_connections()]


def set_rates(me: Self, *, rates: dict[Ends, int]) -> None:
    """Keep what each connection sends below its rate in bytes/s."""
    for ends, connection in own_connections():
        connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, rates[ends])
