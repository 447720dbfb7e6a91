"""What a rank does: joins the group, then runs pieces of work until its input ends."""

import importlib
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Thread
from typing import Any

import numpy as np
import numpy.typing as npt

from collsim.gloo.progress import Self
from collsim.gloo.traffic import Counts, start_counting, stop_counting
from collsim.gloo.wire import Closed, encode, receive, send

Bytes = npt.NDArray[np.uint8]


def serve(me: Self, store: int, requests: int, answers: int) -> None:
    """Join the group, then work: each request names a function and its arguments.

    Args:
        me: This rank.
        store: Descriptor of the empty file through which the ranks find each other.
        requests: Descriptor to read pieces of work from.
        answers: Descriptor to write what came of them to.
    """
    import torch.distributed as dist

    try:
        me.says("joining the group")
        path = f"/proc/self/fd/{store}"
        meeting_point = dist.FileStore(path, me.n_ranks)  # type: ignore[attr-defined]
        dist.init_process_group(
            "gloo",
            store=meeting_point,
            rank=me.rank,
            world_size=me.n_ranks,
            timeout=timedelta(seconds=me.timeout),
        )
        dist.barrier()
        send(answers, encode(("answer", None)))
        while True:
            me.says("waiting for work")
            send(answers, encode(("answer", perform(me, *receive(requests)))))
    except Closed:
        return
    except Exception as error:
        traceback.print_exc()
        send(answers, encode(("raised", spell_error(error))))
        receive(requests)  # stay until the server ends the group: others may not have failed yet


def perform(me: Self, name: str, arguments: dict[str, Any]) -> Any:
    """Call ``module:function`` of this name, for this rank."""
    me.says(f"beginning {name}")
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)(me, **arguments)


def spell_error(error: Exception) -> str:
    """An error in a line: "raised RuntimeError: its first line"."""
    reason = (str(error).splitlines() or [""])[0]
    return f"raised {type(error).__name__}" + (f": {reason}" if reason else "")


def _begin(me: Self) -> Counts:
    """Wait for the others, with one clock; what each connection had received by then."""
    import torch.distributed as dist

    me.says("waiting in the barrier")
    dist.barrier()
    me.board.agree()
    return start_counting(me)


@dataclass(frozen=True)
class PlannedStep:
    """One step of one rank and channel: (transfer, peer, first byte, end) of each operation."""

    step: int
    text: str
    receives: tuple[tuple[int, int, int, int], ...]
    sends: tuple[tuple[int, int, int, int], ...]


@dataclass
class Record:
    """What a rank observed, in nanoseconds of a clock that the ranks share.

    Attributes:
        zero: When it left the barrier.
        steps: (step, begin, end).
        left: (transfer, when the wait for its send returned).
        done: (transfer, when the wait for its receive returned).
        buffer: Its memory at the end.
        received: Bytes that each of its connections received.
    """

    zero: int
    steps: list[tuple[int, int, int]]
    left: list[tuple[int, int]]
    done: list[tuple[int, int]]
    buffer: Bytes
    received: Counts = field(default_factory=dict)


def run_plan(
    me: Self, *, channels: Sequence[Sequence[PlannedStep]], memory: Bytes, repetitions: int
) -> list[Record]:
    """Run this rank's part of a schedule over isend and irecv, a thread a channel."""
    import torch

    records: list[Record] = []
    for _ in range(repetitions):
        buffer = memory.copy()
        tensor = torch.from_numpy(buffer)
        before = _begin(me)
        record = Record(me.board.now(), [], [], [], buffer)
        _run_channels(me, channels, tensor, record)
        record.received = stop_counting(me, before)
        _keep(record, records)
    return records


def _keep(record: Record, records: list[Record]) -> None:
    """Keep what a repetition saw, and one buffer of them all.

    Raises:
        RuntimeError: It ended with other bytes than the first.
    """
    first = records[0] if records else record
    if not np.array_equal(record.buffer, first.buffer):
        raise RuntimeError(f"repetition {len(records)} ended with other bytes than the first")
    record.buffer = first.buffer
    records.append(record)


def _run_channels(
    me: Self, channels: Sequence[Sequence[PlannedStep]], tensor: Any, record: Record
) -> None:
    """Run the channels side by side; an error in one is raised here."""
    errors: list[Exception] = []

    def run(channel: int) -> None:
        try:
            for planned in channels[channel]:
                _run_step(me, channel, planned, tensor, record)
        except Exception as error:
            errors.append(error)

    threads = [Thread(target=run, args=(channel,)) for channel in range(1, len(channels))]
    for thread in threads:
        thread.start()
    run(0)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _run_step(me: Self, channel: int, planned: PlannedStep, tensor: Any, record: Record) -> None:
    """Post a step's receives, then its sends, and wait for all of them."""
    import torch.distributed as dist

    me.says(planned.text)
    begin = me.board.now()
    receives = [
        (transfer, dist.irecv(tensor[first:end], src=peer, tag=channel))
        for transfer, peer, first, end in planned.receives
    ]
    sends = [
        (transfer, dist.isend(tensor[first:end], dst=peer, tag=channel))
        for transfer, peer, first, end in planned.sends
    ]
    for operations, seen in ((sends, record.left), (receives, record.done)):
        for transfer, handle in operations:
            assert handle is not None
            handle.wait()
            seen.append((transfer, me.board.now()))
    record.steps.append((planned.step, begin, me.board.now()))


def run_native(
    me: Self, *, collective: str, root: int, dtype: str, memory: Bytes, repetitions: int
) -> list[Record]:
    """Run torch's own collective on this rank."""
    import torch
    import torch.distributed as dist

    records: list[Record] = []
    for _ in range(repetitions):
        buffer = memory.copy()
        kind = getattr(torch, dtype)
        raw = torch.from_numpy(buffer)
        tensor = raw.view(kind) if len(raw) else torch.empty(0, dtype=kind)
        blocks = list(tensor.chunk(me.n_ranks)) if len(tensor) else [tensor] * me.n_ranks
        own = blocks[me.rank].clone() if collective != "broadcast" else tensor
        before = _begin(me)
        me.says(f"torch's {collective}")
        zero = me.board.now()
        match collective:
            case "broadcast":
                dist.broadcast(tensor, src=root)
            case "scatter":
                dist.scatter(own, blocks if me.rank == root else None, src=root)
                blocks[me.rank].copy_(own)
            case "all_gather":
                dist.all_gather(blocks, own)
        end = me.board.now()
        counts = stop_counting(me, before)
        _keep(Record(zero, [(me.rank, zero, end)], [], [], buffer, counts), records)
    return records


def ping(me: Self, *, peer: int, nbytes: int, repetitions: int) -> list[float]:
    """Seconds that a message takes between rank 0 and `peer`: half of each round trip.

    Ranks that are neither return no times.
    """
    import torch
    import torch.distributed as dist

    tensor = torch.zeros(nbytes, dtype=torch.uint8)
    times: list[float] = []
    other = {0: peer, peer: 0}.get(me.rank)
    for _ in range(repetitions if other is not None else 0):
        me.says(f"ping-pong with rank {other}")
        begin = time.perf_counter()
        for turn in (0, peer):
            (dist.send if turn == me.rank else dist.recv)(tensor, other)
        times.append((time.perf_counter() - begin) / 2)
    return times


def stream(me: Self, *, src: int, dst: int, nbytes: int) -> list[float]:
    """Seconds in which `src` hands `nbytes` to `dst` and hears, by one byte, that all is there.

    Only `src` returns a time.
    """
    import torch
    import torch.distributed as dist

    if me.rank not in (src, dst):
        return []
    me.says(f"stream from rank {src} to rank {dst}")
    data, word = torch.zeros(nbytes, dtype=torch.uint8), torch.zeros(1, dtype=torch.uint8)
    if me.rank == dst:
        dist.recv(data, src)
        dist.send(word, src)
        return []
    begin = time.perf_counter()
    dist.send(data, dst)
    dist.recv(word, dst)
    return [time.perf_counter() - begin]
