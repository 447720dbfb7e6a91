"""Results and schedules in the formats of other tools: JSON, CSV, Perfetto, GOAL."""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collsim.errors import CollsimError, ScenarioError
from collsim.runner import Result, Run
from collsim.schedule import Schedule, spell_chunks
from collsim.timeline import UNOBSERVED, Timeline

FORMATS = ("json", "csv", "perfetto", "goal")


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it is there whole or not at all.

    Raises:
        ScenarioError: It cannot be written.
    """
    encoded = content.encode() if isinstance(content, str) else content
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(encoded)
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ScenarioError(f"cannot write {path}: {error.strerror}") from None


def result_mapping(result: Result) -> dict[str, Any]:
    """A result as JSON holds it: provenance, scenario, bound, and a row for each algorithm."""
    return {
        "provenance": result.provenance,
        "scenario": result.scenario.model_dump(mode="json"),
        "lower_bound_s": result.bound.seconds,
        "lower_bound_reason": result.bound.reason,
        "algorithms": result.rows(),
        "skipped": [{"algorithm": title, "reason": reason} for title, reason in result.skipped],
    }


def to_json(mapping: dict[str, Any]) -> str:
    """A mapping as JSON text; NaN and infinities are not JSON and would raise ValueError."""
    return json.dumps(mapping, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def export(result: Result, form: str) -> str:
    """A result as the text of a file.

    Args:
        result: What to export. ``perfetto`` and ``goal`` hold one algorithm.
        form: ``json``, ``csv`` (one row a message), ``perfetto`` (open it at ui.perfetto.dev) or
            ``goal`` (the input of LogGOPSim's schedule compiler).

    Raises:
        CollsimError: The format holds one algorithm and there are several.
    """
    if form in ("perfetto", "goal") and len(result.runs) > 1:
        names = ", ".join(run.plan.title for run in result.runs)
        raise ScenarioError(
            f"{form} holds one algorithm; choose with --set algorithm=NAME one of {names}",
            "algorithm",
        )
    only = result.runs[0]
    match form:
        case "json":
            return to_json(result_mapping(result))
        case "csv":
            return _csv(result)
        case "perfetto":
            return _perfetto(only, result.provenance)
        case "goal":
            return goal(only.schedule, result.scenario.nbytes)
    raise CollsimError(f"unknown format {form!r}; use one of {', '.join(FORMATS)}")


def _csv(result: Result) -> str:
    import pandas as pd  # late: half a second

    frames = []
    for run in result.runs:
        frame = run.timeline.to_frame().reset_index()
        frame.insert(0, "algorithm", run.plan.title)
        frames.append(frame)
    head = "".join(f"# {key}: {value}\n" for key, value in result.provenance.items())
    return head + pd.concat(frames).to_csv(index=False)


def _perfetto(run: Run, provenance: dict[str, str]) -> str:
    """Chrome's trace event format: a process a rank, a thread a peer, and one a link."""
    events = list(_rank_events(run.timeline)) + list(_link_events(run.timeline))
    return json.dumps(
        {"displayTimeUnit": "ns", "otherData": provenance, "traceEvents": events},
        ensure_ascii=False,
    )


def _rank_events(timeline: Timeline) -> Iterator[dict[str, Any]]:
    schedule = timeline.schedule
    for rank in range(schedule.n_ranks):
        yield {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank}"}}
    named: set[tuple[int, int]] = set()
    nbytes = schedule.message_bytes(timeline.nbytes)
    for transfer in schedule:
        label = schedule.steps.label[transfer.src_step]
        size = int(nbytes[transfer.id])
        began, left = int(timeline.started[transfer.id]), int(timeline.left[transfer.id])
        done = int(timeline.done[transfer.id])
        sides = (
            (transfer.src, 2 * transfer.dst, f"to rank {transfer.dst}", left),
            (transfer.dst, 2 * transfer.src + 1, f"from rank {transfer.src}", done),
        )
        for rank, thread, text, end in sides:
            if (rank, thread) not in named:
                named.add((rank, thread))
                name = {"name": text}
                yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": thread, "args": name}
            yield {
                "ph": "X",
                "name": f"{spell_chunks(transfer.chunks)} {text}",
                "pid": rank,
                "tid": thread,
                "ts": began / 1e6,
                "dur": (end - began) / 1e6,
                "args": {"transfer": transfer.id, "bytes": size, "label": label},
            }


def _link_events(timeline: Timeline) -> Iterator[dict[str, Any]]:
    hops = timeline.hops
    if hops is None:
        return
    process = timeline.schedule.n_ranks
    yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": "links"}}
    for link in sorted(set(hops.link.tolist())):
        name = {"name": hops.link_names[link]}
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": link, "args": name}
    for transfer in timeline.schedule:
        for hop in range(hops.first[transfer.id], hops.first[transfer.id + 1]):
            if hops.start[hop] == UNOBSERVED:
                continue
            yield {
                "ph": "X",
                "name": str(transfer),
                "pid": process,
                "tid": int(hops.link[hop]),
                "ts": int(hops.start[hop]) / 1e6,
                "dur": int(hops.end[hop] - hops.start[hop]) / 1e6,
                "args": {"transfer": transfer.id},
            }


def goal(schedule: Schedule, nbytes: int) -> str:
    """The schedule in GOAL (Hoefler, Siebert, Lumsdaine: ICPP 2009), as LogGOPSim reads it.

    Every operation requires all of the step before it on its channel; a channel is a tag.

    LogGOPSim (Hoefler, Schneider, Lumsdaine: HPDC 2010) knows no topology. Its network is a star
    of one host a rank, `fifo`, `eager`: make -S larger than every message. It takes (n − 1)·G for n
    bytes where collsim takes n·G, and its g comes on top of the bytes; L and g make up for that.
    For a route's latency l, overhead o, gap g and bandwidth b, all in picoseconds, give it

        -G 1/b   -o o   -L l + G   -g max(g, o + n·G) − (n − 1)·G

    That -g is G + o for every n if the gap is no more than o + n·G. If a rank starts all its sends
    in one step, it is max(g, o, n·G) − (n − 1)·G. So converted, makespans are equal for trees of
    either kind and for rings and swaps of equal blocks; without overhead for most other algorithms
    too. They differ where

    * a rank sends while it receives: LogGOPSim's CPU is held until the last byte is there;
    * there is overhead and some steps send one message, others several: one g cannot tell them;
    * a message comes before its step: LogGOPSim pays its overhead then, collsim when it is taken;
    * messages of two senders arrive at one instant: each picks an order of its own;
    * the protocol is `rendezvous`: LogGOPSim's lets the bytes go before the receiver is ready.
    """
    sizes = schedule.message_bytes(nbytes).tolist()
    steps = schedule.steps
    operations: list[list[str]] = [[] for _ in range(len(steps))]
    for t, (src, dst, channel, src_step, dst_step) in enumerate(
        zip(schedule.src.tolist(), schedule.dst.tolist(), schedule.channel.tolist(),
            schedule.src_step.tolist(), schedule.dst_step.tolist(), strict=True)
    ):  # fmt: skip
        operations[dst_step].append(f"recv {sizes[t]}b from {src} tag {channel}")
        operations[src_step].append(f"send {sizes[t]}b to {dst} tag {channel}")
    lines = [f"num_ranks {schedule.n_ranks}", ""]
    by_rank: list[list[int]] = [[] for _ in range(schedule.n_ranks)]
    for step, rank in enumerate(steps.rank.tolist()):
        by_rank[rank].append(step)
    previous = steps.previous.tolist()
    for rank, own in enumerate(by_rank):
        lines.append(f"rank {rank} {{")
        labels: dict[int, list[str]] = {}
        n_labels = 0
        for step in own:
            labels[step] = []
            for operation in operations[step]:
                n_labels += 1
                labels[step].append(f"l{n_labels}")
                lines.append(f"l{n_labels}: {operation}")
            required = labels.get(previous[step], [])
            lines += [f"{one} requires {other}" for one in labels[step] for other in required]
        lines += ["}", ""]
    return "\n".join(lines)
