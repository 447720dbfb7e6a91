"""NCCL: broadcast passes chunks along a ring that is open between the root and the rank before it.

Read from `src/device/broadcast.h` (the ring is the only algorithm), `src/include/collectives.h`
(a chunk is one step of the buffer) and `src/init.cc` (the buffer of protocol Simple has 4 MiB), as
they were in NCCL 2.21; chunks of 512 KiB are also what NVIDIA/nccl issue 391 says.
"""

from functools import partial
from typing import Final

from collsim.libraries.choice import Call, Library, LibraryChoice

VERSION: Final = "2.21"
BUFFER: Final = 4 << 20
"""Bytes of a channel's buffer under protocol Simple."""

STEPS: Final = 8
"""Steps that a buffer is cut into."""

CHUNK: Final = BUFFER // STEPS

_choice = partial(LibraryChoice, "nccl", VERSION)


def broadcast(call: Call) -> LibraryChoice:
    """What ncclBroadcast would do with one channel and protocol Simple."""
    if call.nbytes == 0:
        return _choice(None, "", "n = 0: returns at once", note="nothing is sent")
    note = (
        "with one channel, in the order of ranks; NCCL orders its ring by the topology, shares "
        "a message among several, and may take protocol LL or LL128 for a small one"
    )
    rule = f"always; {CHUNK:,} B a chunk"
    return _choice("chain", "ring", rule, segment_bytes=CHUNK, note=note)


NCCL: Final = Library(
    "NCCL",
    VERSION,
    {"broadcast": broadcast},
    "NCCL chooses by a model of the hardware, which collsim does not have",
)
"""NCCL's rules."""
