"""What the terminal shows of mistakes on real ranks."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collsim.mistakes import Lesson


def overview(lessons: Sequence[Lesson]) -> RenderableType:
    """All mistakes as a table."""
    table = Table(header_style="bold", box=None, pad_edge=False)
    table.add_column("mistake", no_wrap=True)
    table.add_column("what happens on gloo")
    table.add_column("documented", no_wrap=True)
    table.add_column("foreseen", no_wrap=True)
    for lesson in lessons:
        table.add_row(
            lesson.mistake.id,
            lesson.mistake.outcome,
            "yes" if lesson.agrees else Text("NO", style="red"),
            "yes" if lesson.diagnosis else "–",
        )
    silent = sum(lesson.is_silent for lesson in lessons)
    foreseen = sum(bool(lesson.diagnosis) for lesson in lessons)
    remark = (
        f"\n{silent} of {len(lessons)} are silent: every rank returns, some with wrong values. "
        "Documented: every rank did what is documented of it. Foreseen: made in a rank program, "
        f"collsim finds it before anything runs ({foreseen} of {len(lessons)})."
    )
    return Group(table, Text(remark, style="dim"))


def detail(lesson: Lesson) -> RenderableType:
    """One mistake: code, what became of each rank, diagnosis and remedy."""
    mistake = lesson.mistake
    ranks = Table(header_style="bold", box=None, pad_edge=False)
    ranks.add_column("rank")
    ranks.add_column("what became of it on gloo")
    for rank in range(len(lesson.observed)):
        ranks.add_row(str(rank), Text(lesson.spell(rank)))
    verdict = [] if lesson.agrees else [Text("This is not as documented.", style="red")]
    return Group(
        Text(f"{mistake.title}: {mistake.outcome}", style="bold"),
        Text(f"\n{lesson.code}"),
        ranks,
        *verdict,
        *_foreseen(lesson),
        Text.assemble(("\nRemedy: ", "bold"), mistake.remedy),
    )


def _foreseen(lesson: Lesson) -> tuple[RenderableType, ...]:
    """What collsim says of the mistake before anything runs, and of which program."""
    if not lesson.diagnosis:
        return (Text(f"\ncollsim does not foresee it: {lesson.mistake.blind}."),)
    return (
        Text("\nThe same mistake in a rank program of collsim:", style="bold"),
        Text(f"\n{lesson.diagnosed_code}"),
        Text.assemble(("collsim says before it runs: ", "bold"), lesson.diagnosis),
    )
