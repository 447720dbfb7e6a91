"""Ranks whose network is shaped: by namespaces where these can be made, else by pacing sockets."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, Literal

from collsim.errors import ExecutionUnavailable
from collsim.gloo.execute import GlooServer
from collsim.gloo.group import RankGroup
from collsim.gloo.lab import GOODPUT, Shape
from collsim.gloo.namespaces import LabUnavailable, with_rights
from collsim.gloo.pacing import pace

PINGS: Final = 30

Means = Literal["namespaces", "pacing"]

GOODPUTS: Final[dict[Means, float]] = {"namespaces": GOODPUT, "pacing": 1.0}
"""The part of a link's rate that is data. Packets on loopback are so large that headers vanish."""


@dataclass(frozen=True)
class Shaped:
    """Ranks in a shaped network.

    Attributes:
        group: The ranks.
        means: How their network is shaped.
    """

    group: RankGroup
    means: Means


@contextmanager
def shaped_group(shape: Shape, *, timeout: float) -> Iterator[Shaped]:
    """Start ranks in a network of this shape.

    Args:
        shape: The rates.
        timeout: Seconds that starting may take, and each piece of work.

    Raises:
        ExecutionUnavailable: There is no torch, or this machine cannot shape such a network.
        ExecutionError: A rank died, hung or raised.
    """
    with ExitStack() as stack:
        try:
            yield Shaped(_in_namespaces(stack, shape, timeout), "namespaces")
            return
        except LabUnavailable as error:
            if not shape.pairs:
                raise ExecutionUnavailable(
                    f"{error}. Without namespaces a link for each pair can be had: "
                    "--set topology.kind=full_mesh"
                ) from None
        yield Shaped(_paced(stack, shape, timeout), "pacing")


def _in_namespaces(stack: ExitStack, shape: Shape, timeout: float) -> RankGroup:
    server = stack.enter_context(GlooServer(with_rights()))
    try:
        return stack.enter_context(server.group(shape.n_ranks, timeout=timeout, lab=shape))
    except ExecutionUnavailable as error:
        stack.close()
        raise LabUnavailable(str(error)) from None


def _paced(stack: ExitStack, shape: Shape, timeout: float) -> RankGroup:
    server = stack.enter_context(GlooServer())
    group = stack.enter_context(server.group(shape.n_ranks, timeout=timeout))
    pace(group, shape.pairs)
    return group


def measure_alpha(group: RankGroup) -> float:
    """Seconds of a message of one byte: the median over rank 0's peers of half a round trip."""
    found: list[float] = []
    for peer in range(1, group.n_ranks):
        arguments: dict[str, Any] = {"peer": peer, "nbytes": 1, "repetitions": PINGS}
        found += group.run("collsim.gloo.ranks:ping", [arguments] * group.n_ranks)[0]
    return median(found)
