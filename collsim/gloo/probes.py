"""Let fresh ranks do a piece of work that may go wrong, and tell what became of each."""

import math
from collections.abc import Sequence

from collsim.gloo.forks import fork_group
from collsim.gloo.outcomes import Fate, of_death, of_error
from collsim.gloo.watch import Failure, Heard, exchange, listen


def probe(
    requests: Sequence[bytes], timeout: float, patience: float, caller: int, foreign: int
) -> list[Fate] | Failure:
    """Fork ranks, give each its request, which it answers with its `Fate`, and end them all.

    Args:
        requests: What to send to each, encoded.
        timeout: Seconds that a rank may wait for others.
        patience: Seconds after which a rank that has said nothing is taken for hung.
        caller: Descriptor that comes to its end when the caller has gone.
        foreign: A descriptor of the server that no rank should hold open.

    Returns:
        The fate of each rank, or why there are no ranks.

    Raises:
        Closed: The caller has gone.
    """
    n_ranks = len(requests)
    try:
        group = fork_group(n_ranks, timeout, foreign)
    except OSError as error:
        return Failure(f"{n_ranks} ranks cannot be started: {error}")
    try:
        joined = exchange(group, (), timeout, caller)
        if isinstance(joined, Failure):
            return joined
        heard = listen(
            group, requests, patience, caller, after_error=math.inf, after_death=math.inf
        )
        return [_fate(heard, rank) for rank in range(n_ranks)]
    finally:
        group.end(patience=0)


def _fate(heard: Heard, rank: int) -> Fate:
    if rank in heard.answers:
        answer: Fate = heard.answers[rank]
        return answer
    if rank in heard.raised:
        return of_error(heard.raised[rank])
    if rank in heard.died:
        return of_death(heard.died[rank])
    return Fate("hung", "said nothing")
