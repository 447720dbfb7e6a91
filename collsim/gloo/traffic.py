"""Bytes on the wire: what the kernel counts between each pair of ranks, and what gloo should send.

Each rank reads TCP_INFO of its own sockets before and after a piece of work. That needs no
privileges. Ranks wait for each other beside these sockets, so that nothing else is counted.
"""

import os
import socket
import struct
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from collsim.errors import ExecutionError
from collsim.gloo.progress import Ends, Self
from collsim.schedule import Ints, Schedule

FORWARD: Final = 96
"""Bytes that a message costs beside its payload: 48 to say that it is ready, a header of 48."""

BACK: Final = 48
"""Bytes that its receiver sends back, to say that it is ready too. Both were measured with gloo of
torch 2.13; they hold for every message, even an empty one: gloo's transport is a rendezvous."""

_BYTES_RECEIVED: Final = 128  # tcpi_bytes_received in struct tcp_info, linux/tcp.h
_QUIET: Final = 0.005
_PATIENCE: Final = 2.0

Counts = dict[Ends, int]
"""Bytes received by this process, by connection."""


def wire_bytes(schedule: Schedule, nbytes: int) -> Ints:
    """Bytes that gloo sends between each pair, int64[n_ranks, n_ranks]: a row sends."""
    matrix = schedule.bytes_matrix(nbytes)
    np.add.at(matrix, (schedule.src, schedule.dst), FORWARD)
    np.add.at(matrix, (schedule.dst, schedule.src), BACK)
    return matrix


def native_wire_bytes(schedule: Schedule, nbytes: int) -> Ints:
    """The same for torch's own collective, which is gloo's pattern: `schedule` must be that.

    torch does not call gloo for an all_gather of empty tensors.
    """
    if schedule.collective.name == "all_gather" and nbytes == 0:
        return np.zeros((schedule.n_ranks, schedule.n_ranks), np.int64)
    return wire_bytes(schedule, nbytes)


def own_connections() -> Iterator[tuple[Ends, socket.socket]]:
    """This process's TCP connections; each socket is closed when the next is asked for."""
    for entry in list(Path("/proc/self/fd").iterdir()):
        try:
            if not str(entry.readlink()).startswith("socket:"):
                continue
            connection = socket.socket(fileno=os.dup(int(entry.name)))
        except OSError:  # closed meanwhile
            continue
        with connection:
            if connection.type != socket.SOCK_STREAM or connection.family == socket.AF_UNIX:
                continue
            try:
                ends = (connection.getsockname()[:2], connection.getpeername()[:2])
            except OSError:  # not connected
                continue
            yield ends, connection


def received(foreign: Collection[Ends] = ()) -> Counts:
    """What this process's connections, but for some that are foreign, have received so far."""
    counts: Counts = {}
    for ends, connection in own_connections():
        if ends in foreign:
            continue
        told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        if len(told) >= _BYTES_RECEIVED + 8:
            counts[ends] = struct.unpack_from("=Q", told, _BYTES_RECEIVED)[0]
    return counts


def settled(foreign: Collection[Ends] = ()) -> Counts:
    """What has been received once nothing more comes in for a moment."""
    deadline = time.monotonic() + _PATIENCE
    before = received(foreign)
    while time.monotonic() < deadline:
        time.sleep(_QUIET)
        after = received(foreign)
        if after == before:
            break
        before = after
    return before


def start_counting(me: Self) -> Counts:
    """What was received before; all ranks leave together, none before all have counted."""
    me.meet()
    before = settled(me.foreign)
    me.meet()
    return before


def stop_counting(me: Self, before: Counts) -> Counts:
    """What was received since all began; none goes on before all have finished and counted."""
    me.says("finished")
    me.meet()
    after = settled(me.foreign)
    me.meet()
    return {ends: count - before.get(ends, 0) for ends, count in after.items()}


def matrix_of(counts: Sequence[Counts]) -> Ints:
    """Bytes between each pair from what every rank's connections received.

    Raises:
        ExecutionError: A connection has no other end among the ranks.
    """
    # Both addresses: the kernel may give two ranks one port, for connections to different peers.
    owner = {ends: rank for rank, mine in enumerate(counts) for ends in mine}
    matrix = np.zeros((len(counts), len(counts)), np.int64)
    for rank, mine in enumerate(counts):
        for (own, peer), count in mine.items():
            if (peer, own) not in owner:
                host, port = peer
                raise ExecutionError(
                    f"rank {rank} has a connection to {host}, port {port}, which no rank has: "
                    "bytes cannot be counted where addresses are translated on the way"
                )
            matrix[owner[peer, own], rank] += count
    return matrix
