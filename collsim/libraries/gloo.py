"""gloo as `torch.distributed` calls it: one algorithm a collective, whatever the size.

Read from `gloo/broadcast.cc`, `gloo/scatter.cc` and `gloo/allgather.cc`; that torch 2.13 sends
those messages, and no others, is what `collsim check` counts.
"""

from typing import Final

from collsim.libraries.choice import Call, Library, LibraryChoice

VERSION: Final = "torch 2.13"

NATIVE: Final = {
    "broadcast": "binomial tree",
    "scatter": "all at once",
    "all_gather": "ring of half blocks",
}
"""What each is, by collective; collsim's algorithm of it is called gloo."""


def only(call: Call) -> LibraryChoice:
    """The collective's one algorithm."""
    return LibraryChoice("gloo", VERSION, "gloo", NATIVE[call.collective], "always")


GLOO: Final = Library("gloo", VERSION, dict.fromkeys(NATIVE, only))
"""gloo's rules."""
