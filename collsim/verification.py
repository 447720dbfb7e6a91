"""Move real bytes through a schedule, in random legal orders, and hold it to its contract."""

import random
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from collsim.errors import ContractError
from collsim.schedule import Ints, Schedule

Buffers = tuple[npt.NDArray[np.uint8], ...]
"""The whole message as each rank sees it: uint8[bytes] for each rank."""


def initial_buffers(schedule: Schedule, nbytes: int, seed: int = 0) -> Buffers:
    """Each rank's memory before the collective: what it holds at the start, noise elsewhere.

    Args:
        schedule: The schedule.
        nbytes: Bytes of the collective's argument, as in `Schedule.offsets`.
        seed: Seed of the message and of the noise.
    """
    offsets = schedule.offsets(nbytes)
    message = _message(schedule, nbytes, seed)
    noise = np.random.default_rng([seed, 1])
    buffers = []
    for rank in range(schedule.n_ranks):
        buffer = noise.integers(0, 256, len(message), np.uint8)
        held = schedule.collective.before(rank, schedule.n_ranks, schedule.root, schedule.n_chunks)
        here = slice(offsets[held.start], offsets[held.stop])
        buffer[here] = message[here]
        buffers.append(buffer)
    return tuple(buffers)


def verify(
    schedule: Schedule, *, nbytes: int | None = None, orders: int = 3, seed: int = 0
) -> Buffers:
    """Check that the schedule achieves its collective, whatever the order of events.

    Real bytes move from rank to rank. A message may be read at any moment between its send step's
    beginning and end, and written at any later moment of its receive step: wider than both
    protocols allow, so an order that breaks the contract is found if one of the tried ones does.

    Args:
        schedule: The schedule.
        nbytes: Bytes of the collective's argument; eight for each chunk of it if not given.
        orders: How many random orders to try.
        seed: Seed of the message and of the orders.

    Returns:
        Each rank's memory after the last order, uint8[whole message] for each rank.

    Raises:
        ContractError: A rank lacks, at the end, something that the collective promises.
    """
    if orders < 1:
        raise ValueError(f"orders must be at least 1, got {orders}")
    if nbytes is None:
        nbytes = 8 * schedule.chunks_per_block
    offsets = schedule.offsets(nbytes)
    in_flight: dict[int, npt.NDArray[np.uint8]] = {}
    for attempt in range(orders):
        buffers = initial_buffers(schedule, nbytes, seed)
        for transfer, is_read in random_order(schedule, random.Random(f"{seed} {attempt}")):
            first = schedule.first_chunk[transfer]
            here = slice(offsets[first], offsets[first + schedule.chunk_count[transfer]])
            if is_read:
                in_flight[transfer] = buffers[schedule.src[transfer]][here].copy()
            else:
                buffers[schedule.dst[transfer]][here] = in_flight.pop(transfer)
        check_contract(schedule, nbytes, buffers, seed)
    return buffers


def check_contract(
    schedule: Schedule, nbytes: int, buffers: Buffers, seed: int = 0, inputs: Buffers | None = None
) -> None:
    """Compare what ranks hold at the end with what the collective promises.

    Args:
        schedule: The schedule.
        nbytes: Bytes of the collective's argument.
        buffers: What each rank holds at the end.
        seed: Seed of the initial memory, if `initial_buffers` made it.
        inputs: The initial memory otherwise.

    Raises:
        ContractError: Names the first rank and chunk that differ.
    """
    offsets = schedule.offsets(nbytes)
    message = _gather(schedule, nbytes, inputs) if inputs else _message(schedule, nbytes, seed)
    for rank, buffer in enumerate(buffers):
        promised = schedule.collective.after(
            rank, schedule.n_ranks, schedule.root, schedule.n_chunks
        )
        here = slice(offsets[promised.start], offsets[promised.stop])
        wrong = np.flatnonzero(buffer[here] != message[here])
        if len(wrong):
            byte = int(offsets[promised.start] + wrong[0])
            chunk = int(np.searchsorted(offsets, byte, side="right")) - 1
            raise ContractError(
                f"{schedule.collective.name} by {schedule.algorithm}: rank {rank} does not hold "
                f"chunk {chunk} of {schedule.n_chunks} at the end "
                f"({len(wrong)} of its bytes are wrong, the first is byte {byte})"
            )


def _message(schedule: Schedule, nbytes: int, seed: int) -> npt.NDArray[np.uint8]:
    """The whole message, random bytes."""
    total = nbytes * schedule.collective.blocks(schedule.n_ranks)
    return np.random.default_rng([seed, 0]).integers(0, 256, total, np.uint8)


def _gather(schedule: Schedule, nbytes: int, inputs: Buffers) -> npt.NDArray[np.uint8]:
    """The whole message, put together from what each rank holds at the start."""
    offsets = schedule.offsets(nbytes)
    message = np.zeros(offsets[-1], np.uint8)
    for rank, buffer in enumerate(inputs):
        held = schedule.collective.before(rank, schedule.n_ranks, schedule.root, schedule.n_chunks)
        here = slice(offsets[held.start], offsets[held.stop])
        message[here] = buffer[here]
    return message


def random_order(schedule: Schedule, rng: random.Random) -> Iterator[tuple[int, bool]]:
    """Yield (transfer, whether it is read rather than written) in a random legal order."""
    steps = schedule.steps
    following = {int(p): s for s, p in enumerate(steps.previous.tolist()) if p >= 0}
    sends, receives = _by_step(schedule.src_step), _by_step(schedule.dst_step)
    src_step, dst_step = schedule.src_step.tolist(), schedule.dst_step.tolist()
    undone = np.bincount(schedule.src_step, minlength=len(steps))
    undone = (undone + np.bincount(schedule.dst_step, minlength=len(steps))).tolist()
    was_read, can_write = [False] * len(schedule), [False] * len(schedule)
    possible: list[tuple[int, bool]] = []

    def begin(step: int) -> None:
        possible.extend((transfer, True) for transfer in sends.get(step, ()))
        for transfer in receives.get(step, ()):
            can_write[transfer] = True
            if was_read[transfer]:
                possible.append((transfer, False))

    for step in np.flatnonzero(steps.previous < 0).tolist():
        begin(step)
    while possible:
        pick = rng.randrange(len(possible))
        possible[pick], possible[-1] = possible[-1], possible[pick]
        transfer, is_read = possible.pop()
        yield transfer, is_read
        if is_read:
            was_read[transfer] = True
            if can_write[transfer]:
                possible.append((transfer, False))
        step = src_step[transfer] if is_read else dst_step[transfer]
        undone[step] -= 1
        if undone[step] == 0 and step in following:
            begin(following[step])


def _by_step(column: Ints) -> dict[int, list[int]]:
    """Transfers by the step in `column`."""
    found: dict[int, list[int]] = {}
    for transfer, step in enumerate(column.tolist()):
        found.setdefault(step, []).append(transfer)
    return found
