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
    table.add_column("as documented")
    table.add_column("collsim tells before")
    for lesson in lessons:
        table.add_row(
            lesson.mistake.id,
            lesson.mistake.outcome,
            "yes" if lesson.agrees else Text("NO", style="red"),
            "yes" if lesson.diagnosis else "no",
        )
    return table


def detail(lesson: Lesson) -> RenderableType:
    """One mistake: code, what became of each rank, diagnosis and remedy."""
    mistake = lesson.mistake
    ranks = Table(header_style="bold", box=None, pad_edge=False)
    ranks.add_column("rank")
    ranks.add_column("what became of it")
    for rank in range(len(lesson.observed)):
        ranks.add_row(str(rank), Text(lesson.spell(rank)))
    told = lesson.diagnosis or f"nothing: {mistake.blind}"
    verdict = "" if lesson.agrees else "\nThis is not as documented."
    return Group(
        Text(f"{mistake.title}: {mistake.outcome}", style="bold"),
        Text(f"\n{lesson.code}"),
        ranks,
        Text(verdict, style="red"),
        Text(f"collsim says before: {told}"),
        Text(f"Remedy: {mistake.remedy}"),
    )
