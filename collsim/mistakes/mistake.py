"""What a mistake is, and what may become of the ranks that make it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from collsim.gloo.outcomes import Fate, Kind

N_RANKS: Final = 4


@dataclass(frozen=True)
class Expected:
    """What may become of a rank.

    Attributes:
        kinds: The kinds of fate that occur; several where ranks race each other.
        value: What its tensor holds, if it returns.
        says: Words in its error, in its warning if it returns, or in what is known of its end.
    """

    kinds: frozenset[Kind]
    value: tuple[float, ...] | None = None
    says: str = ""

    def agrees(self, fate: Fate) -> bool:
        """Whether this is what became of a rank."""
        if fate.kind not in self.kinds or self.says not in fate.text:
            return False
        return fate.kind != "returned" or tuple(fate.value) == self.value


@dataclass(frozen=True)
class Mistake:
    """One mistake.

    Attributes:
        id: Its name on the command line.
        title: What is done wrong, in short.
        work: What ranks execute; its source is the lesson's code.
        outcome: What happens, in short.
        remedy: Why it happens and how to do it right.
        right: What each rank should hold.
        expected: What becomes of each rank.
        diagnose: Makes the same mistake in a program of collsim, and gives what collsim says.
        blind: Why collsim's programs cannot make it, if they cannot.
    """

    id: str
    title: str
    work: Callable[..., Any]
    outcome: str
    remedy: str
    right: tuple[tuple[float, ...], ...]
    expected: tuple[Expected, ...]
    diagnose: Callable[[], str] | None = None
    blind: str = ""


def holds(*value: float, says: str = "") -> Expected:
    """It returns, with these values and perhaps a warning."""
    return Expected(frozenset({"returned"}), value, says)


def raises(says: str) -> Expected:
    """It raises an error of its own."""
    return Expected(frozenset({"raised"}), says=says)


ONES: Final = (1.0,) * 4
"""What the root of most broadcasts here sends."""

TIMES_OUT: Final = Expected(frozenset({"timed out"}))

WAITS: Final = Expected(frozenset({"timed out", "lost a peer"}))
"""It gives up waiting, or another that gave up a moment earlier has closed the connection."""

LOSES: Final = Expected(frozenset({"lost a peer"}))
"""It notices at once that a connection is gone."""
