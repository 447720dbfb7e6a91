"""Mistakes in when, and in which order, ranks call."""

from typing import Final

from collsim.gloo import misuse_order
from collsim.mistakes import diagnosis
from collsim.mistakes.mistake import (
    LOSES,
    N_RANKS,
    ONES,
    TIMES_OUT,
    WAITS,
    Expected,
    Mistake,
    holds,
)

ORDER: Final = (
    Mistake(
        "rank-missing",
        "a rank never calls the collective",
        misuse_order.rank_missing,
        "its parent in the tree times out, the others return",
        "Every rank of the group must call; no `if rank ...` around a collective.",
        (ONES,) * 4,
        (holds(*ONES), WAITS, holds(*ONES), holds(4, 4, 4, 4)),
        diagnosis.rank_missing,
    ),
    Mistake(
        "swapped-order",
        "a rank makes two broadcasts of equal size in the other order",
        misuse_order.swapped_order,
        "silent: the contents are exchanged",
        "Collectives are matched by order alone: call them in one order on every rank.",
        ((1, 1, 2, 2),) * 4,
        (holds(1, 1, 2, 2),) * 3 + (holds(2, 2, 1, 1),),
        diagnosis.swapped_order,
    ),
    Mistake(
        "other-collective",
        "a rank calls two different collectives in the other order",
        misuse_order.other_collective,
        "all wait for each other until the timeout",
        "Collectives are matched by order alone: call them in one order on every rank.",
        ((1, 1, 4),) * 4,
        (WAITS,) * 4,
        diagnosis.other_collective,
    ),
    Mistake(
        "send-before-receive",
        "everyone sends first and receives afterwards",
        misuse_order.send_before_receive,
        "all wait for each other until the timeout",
        "Use isend, or let even ranks send first and odd ranks receive first.",
        ((4,), (1,), (2,), (3,)),
        (WAITS,) * 4,
        diagnosis.send_before_receive,
    ),
    Mistake(
        "early-read",
        "what an asynchronous broadcast brings is read before wait()",
        misuse_order.early_read,
        "silent: the old values are read",
        "Call wait() on the handle before touching the tensor.",
        (ONES,) * 4,
        tuple(holds(*(rank + 1,) * 4) for rank in range(N_RANKS)),
        diagnosis.early_read,
    ),
    Mistake(
        "early-write",
        "what an asynchronous broadcast sends is changed before wait()",
        misuse_order.early_write,
        "silent: a late receiver gets the new values, the others the old",
        "Call wait() on the handle before touching the tensor, or send a copy. A large tensor "
        "may even arrive half old, half new.",
        ((9,) * 4, *(ONES,) * 3),
        (holds(9, 9, 9, 9), holds(*ONES), holds(9, 9, 9, 9), holds(*ONES)),
        diagnosis.early_write,
    ),
    Mistake(
        "call-after-timeout",
        "ranks go on with a group after a timeout",
        misuse_order.call_after_timeout,
        "every next call fails, the late rank's as well",
        "A timeout ends the group: destroy it and make another, or let a launcher start anew.",
        (ONES,) * 4,
        (WAITS, WAITS, WAITS, LOSES),
        blind="programs know no timeouts: one that would wait for ever is refused",
    ),
    Mistake(
        "rank-killed",
        "a rank is killed while the others are in a collective",
        misuse_order.rank_killed,
        "its neighbours in the ring fail at once, the other times out",
        "Look for the first rank that ended, not for those that complain; a launcher such as "
        "torchrun starts all of them anew.",
        ((10,) * 4,) * 4,
        (LOSES, TIMES_OUT, LOSES, Expected(frozenset({"killed"}), says="SIGKILL")),
        blind="the ranks of a program run to its end",
    ),
)
