"""Pictures of runs for files, in matplotlib: who sends when, and what each link carries."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from collsim.errors import ScenarioError
from collsim.export import write_whole
from collsim.network import Network
from collsim.runner import Result, Run
from collsim.timeline import Floats, Timeline
from collsim.units import spell_size, spell_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
MOST_LABELS = 32
_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"), (1e-12, "ps"))


def check_format(path: Path) -> None:
    """Refuse a file name that says no picture format, before anything is computed.

    Raises:
        ScenarioError: It does not end in .png, .svg or .pdf.
    """
    if path.suffix not in FORMATS:
        raise ScenarioError(f"cannot draw {path}: the name must end in {', '.join(FORMATS)}")


def save_plot(result: Result, path: Path) -> None:
    """Draw every algorithm of a result: space-time diagram and loaded topology, side by side.

    Raises:
        ScenarioError: The file's name says no picture format, or it cannot be written.
    """
    check_format(path)
    save_figure(draw_result(result), path)


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a picture in the format that its name says, whole or not at all."""
    buffer = BytesIO()
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(buffer, format=path.suffix[1:], dpi=150, metadata=metadata)
    write_whole(path, buffer.getvalue())


def draw_result(result: Result) -> "Figure":
    """One row an algorithm: its space-time diagram, and the topology with each link's load."""
    from matplotlib.figure import Figure  # late: half a second

    n_rows = len(result.runs)
    tall = min(6.0, max(3.2, 0.24 * result.scenario.ranks + 1.2))
    figure = Figure(figsize=(15, tall * n_rows + 1.1), layout="constrained")
    axes = figure.subplots(n_rows, 2, squeeze=False, width_ratios=[3, 2])
    longest = max(run.timeline.makespan for run in result.runs)
    for (left, right), run in zip(axes, result.runs, strict=True):
        draw_space_time(left, run, until=longest)
        draw_loads(right, result.network, run)
    scenario = result.scenario
    head = scenario.question or f"{scenario.collective} of {spell_size(scenario.nbytes)}"
    figure.suptitle(head, fontsize=15, fontweight="bold")
    origin = ", ".join(f"{key} {value}" for key, value in result.provenance.items())
    figure.supxlabel(f"predicted; {origin}", fontsize=8, color="0.4")
    return figure


def draw_space_time(axes: "Axes", run: Run, until: float | None = None) -> None:
    """Ranks downwards, time to the right.

    A rank's lane has what it sends in its upper half, what it receives in its lower half. A line
    leads from the first byte's start at the sender to the end of its receive.
    """
    from matplotlib.collections import LineCollection, PolyCollection

    timeline, schedule = run.timeline, run.schedule
    until = until or timeline.makespan or 1e-6
    scale, unit = next(((s, u) for s, u in _TIME_UNITS if until >= s), _TIME_UNITS[-1])
    columns = (timeline.started, timeline.left, timeline.arrived, timeline.done)
    began, left, arrived, done = (column / 1e12 / scale for column in columns)
    colours = _colours(timeline)
    sends = _bars(schedule.src - 0.36, schedule.src, began, left)
    receives = _bars(schedule.dst, schedule.dst + 0.36, arrived - (left - began), done)
    axes.add_collection(PolyCollection(sends, facecolors=colours, edgecolors="w", linewidths=0.4))
    axes.add_collection(
        PolyCollection(receives, facecolors=colours, edgecolors="w", linewidths=0.4, alpha=0.55)
    )
    ends = [
        ((b, s), (d, r)) for b, s, d, r in zip(began, schedule.src, done, schedule.dst, strict=True)
    ]
    thin = 0.8 if len(schedule) < 200 else 0.3
    axes.add_collection(LineCollection(ends, colors="0.25", linewidths=thin, alpha=0.6))
    axes.plot(done, schedule.dst, ".", color="0.25", markersize=4 * thin)
    for rank, finish in enumerate(timeline.finish):
        axes.plot([0, finish / scale], [rank, rank], color="0.8", linewidth=0.8, zorder=0)
        axes.plot(finish / scale, rank, "k|", markersize=9)
    axes.set(
        xlim=(0, until / scale * 1.02),
        ylim=(schedule.n_ranks - 0.5, -0.5),
        xlabel=unit,
        ylabel="rank",
        title=f"{run.plan.title}: {spell_time(timeline.makespan)}",
    )
    if schedule.n_ranks <= MOST_LABELS:
        axes.set_yticks(range(schedule.n_ranks))
    axes.spines[["top", "right"]].set_visible(False)


def _bars(
    top: npt.ArrayLike, bottom: npt.ArrayLike, begin: Floats, end: Floats
) -> list[list[tuple[float, float]]]:
    """Corners of one rectangle a message."""
    rows = zip(*(np.asarray(c).tolist() for c in (top, bottom, begin, end)), strict=True)
    return [[(b, t), (e, t), (e, low), (b, low)] for t, low, b, e in rows]


def _colours(timeline: Timeline) -> Floats:
    """A colour for each message, by its first chunk: the same segment keeps its colour."""
    from matplotlib import colormaps

    schedule = timeline.schedule
    chunk = schedule.first_chunk / max(1, schedule.n_chunks - 1)
    return np.asarray(colormaps["viridis"](0.85 * np.asarray(chunk, np.float64)))


def draw_loads(axes: "Axes", network: Network, run: Run) -> None:
    """The topology; a link is the redder and thicker the longer messages take it."""
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection

    graph, timeline = network.graph, run.timeline
    where = positions(network)
    use = timeline.link_use
    edges: dict[frozenset[str], float] = {}
    for (u, v), link in network.links.index.items():
        pair = frozenset((u, v))
        edges[pair] = max(edges.get(pair, 0.0), use.get(network.links.names[link], 0.0))
    pairs = sorted(edges, key=lambda pair: (edges[pair], sorted(pair)))
    load = np.array([edges[pair] for pair in pairs])
    colours = colormaps["YlOrRd"](0.15 + 0.85 * np.minimum(load, 1.0))
    colours[load == 0] = (0.85, 0.85, 0.85, 1.0)
    lines = [[where[node] for node in sorted(pair)] for pair in pairs]
    axes.add_collection(
        LineCollection(lines, colors=list(map(tuple, colours)), linewidths=1 + 4 * load)
    )
    _draw_nodes(axes, network, where)
    busiest = (
        f"busiest: {timeline.bottleneck}, {use[timeline.bottleneck]:.0%}" if use else "no load"
    )
    axes.set_title(f"{graph.graph.get('name', 'topology')}; {busiest}", fontsize=11)
    axes.margins(0.12)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_axis_off()


def _draw_nodes(axes: "Axes", network: Network, where: dict[str, tuple[float, float]]) -> None:
    ranks = {network.placement[group[0]]: group for group in network.groups}
    labelled = len(where) <= 2 * MOST_LABELS
    for node, about in network.graph.nodes(data=True):
        x, y = where[node]
        is_host = about["kind"] == "host"
        marker, colour = ("o", "#2b6cb0") if is_host else ("s", "#4a5568")
        axes.plot(x, y, marker, color=colour, markersize=15 if labelled else 5, zorder=3)
        if labelled:
            text = _spell_ranks(ranks.get(node, ())) if is_host else ""
            axes.text(x, y, text, color="white", ha="center", va="center", fontsize=8, zorder=4)


def _spell_ranks(ranks: Sequence[int]) -> str:
    """Ranks of a host as its label: "3", "0–7"."""
    return f"{ranks[0]}–{ranks[-1]}" if len(ranks) > 1 else "".join(map(str, ranks))


def positions(network: Network) -> dict[str, tuple[float, float]]:
    """Where to draw each node: the builder's layout, or one that networkx computes."""
    import networkx as nx

    placed = {node: about.get("pos") for node, about in network.graph.nodes(data=True)}
    if all(placed.values()):
        return {node: (pos[0], pos[1]) for node, pos in placed.items() if pos}
    graph = network.graph.to_undirected()
    is_small = len(graph) < 400  # beyond, spring_layout needs scipy
    found = nx.spring_layout(graph, seed=0) if is_small else nx.circular_layout(graph)
    return {node: (float(x), float(y)) for node, (x, y) in found.items()}
