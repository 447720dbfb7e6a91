"""The same mistakes in rank programs: what collsim says of them before anything runs."""

from collections.abc import Iterator
from dataclasses import replace

from collsim.collectives.all_gather import ALL_GATHER
from collsim.collectives.broadcast import BROADCAST
from collsim.collectives.scatter import SCATTER
from collsim.errors import CollsimError
from collsim.program import ALL, Collective, Program, Rank, Recv, Send, Step
from collsim.tracing import trace
from collsim.verification import verify


def _told(collective: Collective, program: Program, *, root: int = 0, segments: int = 1) -> str:
    """What tracing and verifying a program of four ranks says against it, "" if nothing."""
    try:
        schedule = trace(collective, program, 4, root=root, segments=segments)
        verify(schedule)
    except (CollsimError, ValueError) as error:
        return str(error)
    return schedule.rendezvous_deadlock or ""


def correct() -> str:
    """No mistake."""

    def flat(me: Rank) -> Iterator[Step]:
        if me.rank == 0:
            yield tuple(Send(peer, ALL) for peer in (1, 2, 3))
        else:
            yield Recv(0, ALL)

    return _told(BROADCAST, flat)


def root_outside() -> str:
    """The root is no rank of the group."""

    def flat(me: Rank) -> Iterator[Step]:
        yield Recv(me.root, ALL)

    return _told(BROADCAST, flat, root=4)


def rank_missing() -> str:
    """Rank 3 never receives."""

    def flat(me: Rank) -> Iterator[Step]:
        if me.rank == 0:
            yield tuple(Send(peer, ALL) for peer in (1, 2, 3))
        elif me.rank != 3:
            yield Recv(0, ALL)

    return _told(BROADCAST, flat)


def bigger_receiver() -> str:
    """Rank 3 receives two chunks where rank 0 sends one."""

    def flat(me: Rank) -> Iterator[Step]:
        if me.rank == 0:
            yield Send(1, ALL), Send(2, ALL), Send(3, 0)
        else:
            yield Recv(0, ALL)

    return _told(BROADCAST, flat, segments=2)


def smaller_receiver() -> str:
    """Rank 3 receives one chunk where rank 0 sends two."""

    def flat(me: Rank) -> Iterator[Step]:
        if me.rank == 0:
            yield tuple(Send(peer, ALL) for peer in (1, 2, 3))
        else:
            yield Recv(0, 0 if me.rank == 3 else ALL)

    return _told(BROADCAST, flat, segments=2)


def swapped_order() -> str:
    """Rank 3 receives two chunks in the other order."""

    def flat(me: Rank) -> Iterator[Step]:
        for chunk in (1, 0) if me.rank == 3 else (0, 1):
            if me.rank == 0:
                yield tuple(Send(peer, chunk) for peer in (1, 2, 3))
            else:
                yield Recv(0, chunk)

    return _told(BROADCAST, flat, segments=2)


def short_list() -> str:
    """Nobody receives the block of rank 3."""

    def flat(me: Rank) -> Iterator[Step]:
        others = [peer for peer in range(4) if peer != me.rank]
        sends = [Send(peer, me.block(me.rank)) for peer in others]
        wanted = [peer for peer in others if peer != 3]
        yield (*sends, *(Recv(peer, me.block(peer)) for peer in wanted))

    return _told(ALL_GATHER, flat)


def send_before_receive() -> str:
    """Everyone sends to the right, and receives only in the next step."""

    def ring(me: Rank) -> Iterator[Step]:
        for distance in range(3):
            mine = (me.rank - distance) % 4
            yield Send((me.rank + 1) % 4, me.block(mine))
            yield Recv((me.rank - 1) % 4, me.block((mine - 1) % 4))

    return _told(ALL_GATHER, ring)


def roots_differ() -> str:
    """Rank 3 finds its place in the tree as if rank 2 were the root."""

    def tree(me: Rank) -> Iterator[Step]:
        me = replace(me, root=2) if me.rank == 3 else me
        if me.virtual > 0:
            yield Recv(me.actual(0 if me.virtual < 3 else 1), ALL)
        for child in {0: (1, 2), 1: (3,)}.get(me.virtual, ()):
            yield Send(me.actual(child), ALL)

    return _told(BROADCAST, tree)


def short_scatter_list() -> str:
    """The root sends blocks to ranks 1 and 2 only."""

    def flat(me: Rank) -> Iterator[Step]:
        if me.rank == 0:
            yield tuple(Send(peer, me.block(peer)) for peer in (1, 2))
        else:
            yield Recv(0, me.block(me.rank))

    return _told(SCATTER, flat)


def other_collective() -> str:
    """Rank 3 joins the chain of chunk 1 before it takes chunk 0."""

    def flat(me: Rank) -> Iterator[Step]:
        if me.rank == 0:
            yield tuple(Send(peer, 0) for peer in (1, 2, 3))
        else:
            yield Recv(0, 0)

    def chain(me: Rank) -> Iterator[Step]:
        if me.rank > 0:
            yield Recv(me.rank - 1, 1)
        if me.rank < 3:
            yield Send(me.rank + 1, 1)

    def both(me: Rank) -> Iterator[Step]:
        for program in (chain, flat) if me.rank == 3 else (flat, chain):
            yield from program(me)

    return _told(BROADCAST, both, segments=2)


def early_read() -> str:
    """Rank 1 passes the message on while it is receiving it."""

    def tree(me: Rank) -> Iterator[Step]:
        if me.rank == 0:
            yield Send(1, ALL), Send(2, ALL)
        elif me.rank == 1:
            yield Recv(0, ALL), Send(3, ALL)
        else:
            yield Recv(me.rank - 2, ALL)

    return _told(BROADCAST, tree)


def early_write() -> str:
    """Rank 0 takes something in where it is still sending from."""

    def tree(me: Rank) -> Iterator[Step]:
        if me.rank == 0:
            yield Send(1, ALL), Send(3, ALL)
            yield Send(2, ALL), Recv(1, ALL)
        else:
            yield Recv(0, ALL)
        if me.rank == 1:
            yield Send(0, ALL)

    return _told(BROADCAST, tree)
