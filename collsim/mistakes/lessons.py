"""Make mistakes on real ranks, and put what happens beside what is documented."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from collsim.errors import ScenarioError
from collsim.gloo.execute import GlooServer
from collsim.gloo.outcomes import Fate
from collsim.mistakes.mistake import N_RANKS, Mistake
from collsim.mistakes.table import MISTAKES
from collsim.mistakes.words import observed

TIMEOUT: Final = 1.5
"""Seconds that a rank waits for others before gloo gives up."""

PATIENCE: Final = 4.0
"""Seconds after which a silent rank is taken for hung: longer than gloo's own timeout."""


@dataclass(frozen=True)
class Lesson:
    """A mistake and what came of it.

    Attributes:
        mistake: What was done.
        observed: What became of each rank.
        diagnosis: What collsim says before anything runs, "" if nothing.
    """

    mistake: Mistake
    observed: tuple[Fate, ...]
    diagnosis: str

    @property
    def code(self) -> str:
        """The source of what the ranks executed."""
        return inspect.getsource(self.mistake.work)

    @property
    def diagnosed_code(self) -> str:
        """The source of the program that `diagnosis` is about, its lines numbered, "" if none."""
        if self.mistake.diagnose is None:
            return ""
        lines, first = inspect.getsourcelines(self.mistake.diagnose)
        return "".join(f"{number:>3}  {line}" for number, line in enumerate(lines, first))

    @property
    def is_silent(self) -> bool:
        """Whether a rank holds wrong values, and no rank says a word of it."""
        pairs = list(zip(self.observed, self.mistake.right, strict=True))
        if any(fate.kind != "returned" or fate.text for fate, _ in pairs):
            return False
        return any(tuple(fate.value) != right for fate, right in pairs)

    @property
    def agrees(self) -> bool:
        """Whether every rank's fate is as documented."""
        pairs = zip(self.mistake.expected, self.observed, strict=True)
        return all(expected.agrees(fate) for expected, fate in pairs)

    def spell(self, rank: int) -> str:
        """What became of a rank, in words."""
        fate = self.observed[rank]
        end, said = observed(fate, self.mistake.right[rank])
        return f"{end}: {said}" if fate.kind == "returned" else said

    def to_mapping(self) -> dict[str, Any]:
        """The lesson as plain data."""
        return {
            "id": self.mistake.id,
            "title": self.mistake.title,
            "code": self.code,
            "outcome": self.mistake.outcome,
            "remedy": self.mistake.remedy,
            "ranks": [self.spell(rank) for rank in range(N_RANKS)],
            "as_documented": self.agrees,
            "diagnosis": self.diagnosis,
            "diagnosed_code": self.diagnosed_code,
            "why_no_diagnosis": self.mistake.blind,
        }


def find(name: str) -> Mistake:
    """The mistake of this name.

    Raises:
        ScenarioError: There is none.
    """
    names = [mistake.id for mistake in MISTAKES]
    if name not in names:
        near = get_close_matches(name, names, cutoff=0.4) or names
        raise ScenarioError(f"no mistake is called {name!r}; the nearest: {', '.join(near)}")
    return MISTAKES[names.index(name)]


def reproduce(mistake: Mistake, server: GlooServer) -> Lesson:
    """Make one mistake on four fresh ranks.

    Raises:
        ExecutionError: The ranks could not be started.
    """
    arguments = [{"mistake": mistake.work}] * N_RANKS
    fates = server.probe(
        "collsim.gloo.misuse:attempt", arguments, patience=PATIENCE, timeout=TIMEOUT
    )
    return Lesson(mistake, tuple(fates), mistake.diagnose() if mistake.diagnose else "")


def reproduce_all(
    mistakes: tuple[Mistake, ...], progress: Callable[[str], None]
) -> Iterator[Lesson]:
    """Make mistakes, one after the other.

    Raises:
        ExecutionUnavailable: There is no gloo here.
        ExecutionError: Ranks could not be started.
    """
    with GlooServer() as server:
        for mistake in mistakes:
            progress(mistake.id)
            yield reproduce(mistake, server)
