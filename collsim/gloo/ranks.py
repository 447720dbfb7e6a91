"""What a rank does: joins the group, then runs pieces of work until its input ends."""

import importlib
import mmap
import struct
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collsim.gloo.traffic import Counts, start_counting, stop_counting
from collsim.gloo.wire import Closed, receive, send

TEXT_BYTES: Final = 120
PROGRESS_BYTES: Final = TEXT_BYTES + 8
"""Shared memory of a rank: what it is doing, and how often it has met the others."""

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Self:
    """What a piece of work may use.

    Attributes:
        rank: This rank.
        n_ranks: Number of ranks.
        progress: Shared memory in which a rank says what it is doing.
    """

    rank: int
    n_ranks: int
    progress: mmap.mmap

    def says(self, text: str) -> None:
        """Note what this rank is doing, for the case that it does not come back."""
        start = self.rank * PROGRESS_BYTES
        said = text.encode()[:TEXT_BYTES].ljust(TEXT_BYTES, b"\0")
        self.progress[start : start + TEXT_BYTES] = said

    def meet(self) -> None:
        """Wait until every rank has met as often, in shared memory: no byte on the network."""
        times = self._meetings(self.rank) + 1
        end = (self.rank + 1) * PROGRESS_BYTES
        self.progress[end - 8 : end] = struct.pack("=Q", times)
        while any(self._meetings(rank) < times for rank in range(self.n_ranks)):
            time.sleep(0.0005)

    def _meetings(self, rank: int) -> int:
        end = (rank + 1) * PROGRESS_BYTES
        (times,) = struct.unpack("=Q", self.progress[end - 8 : end])
        return int(times)


def serve(
    rank: int,
    n_ranks: int,
    timeout: float,
    folder: Path,
    progress: mmap.mmap,
    requests: int,
    answers: int,
) -> None:
    """Join the group, then work: each request names a function and its arguments."""
    import torch.distributed as dist

    me = Self(rank, n_ranks, progress)
    try:
        me.says("joining the group")
        store = dist.FileStore(  # type: ignore[attr-defined]
            str(folder / "store"), n_ranks
        )
        # Longer than the server waits: it knows better who is to blame.
        limit = timedelta(seconds=timeout + 10)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=n_ranks, timeout=limit)
        dist.barrier()
        send(answers, ("answer", None))
        while True:
            name, arguments = receive(requests)
            module, _, function = name.partition(":")
            work = getattr(importlib.import_module(module), function)
            send(answers, ("answer", work(me, **arguments)))
    except Closed:
        return
    except Exception as error:
        traceback.print_exc()
        send(answers, ("raised", f"raised {type(error).__name__}: {str(error).splitlines()[0]}"))
        receive(requests)  # stay until the server ends the group: others may not have failed yet


@dataclass(frozen=True)
class PlannedStep:
    """One step of one rank and channel: (transfer, peer, first byte, end) of each operation."""

    step: int
    receives: tuple[tuple[int, int, int, int], ...]
    sends: tuple[tuple[int, int, int, int], ...]


@dataclass
class Record:
    """What a rank observed, in nanoseconds of the machine's monotonic clock.

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
    import torch.distributed as dist

    records = []
    for _ in range(repetitions):
        buffer = memory.copy()
        tensor = torch.from_numpy(buffer)
        me.says("waiting in the barrier")
        dist.barrier()
        before = start_counting(me)
        record = Record(time.monotonic_ns(), [], [], [], buffer)
        _run_channels(me, channels, tensor, record)
        record.received = stop_counting(me, before)
        records.append(record)
    return records


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

    me.says(f"step {planned.step} (channel {channel})")
    begin = time.monotonic_ns()
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
            seen.append((transfer, time.monotonic_ns()))
    record.steps.append((planned.step, begin, time.monotonic_ns()))


def run_native(
    me: Self, *, collective: str, root: int, dtype: str, memory: Bytes, repetitions: int
) -> list[Record]:
    """Run torch's own collective on this rank."""
    import torch
    import torch.distributed as dist

    records = []
    for _ in range(repetitions):
        buffer = memory.copy()
        kind = getattr(torch, dtype)
        raw = torch.from_numpy(buffer)
        tensor = raw.view(kind) if len(raw) else torch.empty(0, dtype=kind)
        blocks = list(tensor.chunk(me.n_ranks)) if len(tensor) else [tensor] * me.n_ranks
        own = blocks[me.rank].clone() if collective != "broadcast" else tensor
        me.says("waiting in the barrier")
        dist.barrier()
        before = start_counting(me)
        me.says(f"torch's {collective}")
        zero = time.monotonic_ns()
        match collective:
            case "broadcast":
                dist.broadcast(tensor, src=root)
            case "scatter":
                dist.scatter(own, blocks if me.rank == root else None, src=root)
                blocks[me.rank].copy_(own)
            case "all_gather":
                dist.all_gather(blocks, own)
        end = time.monotonic_ns()
        counts = stop_counting(me, before)
        records.append(Record(zero, [(me.rank, zero, end)], [], [], buffer, counts))
    return records
