"""What Open MPI, MPICH, NCCL and gloo would do: their decision rules, as tables to read.

A rule says which algorithm a library takes for a collective, a number of ranks and a size. Where
collsim lacks that algorithm, the choice says so and names none.

>>> choose("mpich", Call("broadcast", n_ranks=12, nbytes=1 << 20)).algorithm
'scatter_ring_all_gather'
>>> choose("open_mpi", Call("broadcast", n_ranks=12, nbytes=1 << 20)).rule
'8 ≤ p < 16 and n ≥ 32,768: algorithm 1'
"""

from collections.abc import Mapping
from typing import Final

from collsim.libraries.choice import Call, Library, LibraryChoice
from collsim.libraries.gloo import GLOO
from collsim.libraries.mpich import MPICH
from collsim.libraries.nccl import NCCL
from collsim.libraries.open_mpi import OPEN_MPI

LIBRARIES: Final[Mapping[str, Library]] = {
    "open_mpi": OPEN_MPI,
    "mpich": MPICH,
    "nccl": NCCL,
    "gloo": GLOO,
}
"""The libraries by name."""


def choose(library: str, call: Call) -> LibraryChoice:
    """What a library would do with a call.

    Raises:
        ValueError: There is no such library.
    """
    if library not in LIBRARIES:
        raise ValueError(f"no library {library!r}; there are {', '.join(LIBRARIES)}")
    asked = LIBRARIES[library]
    rule = asked.rules.get(call.collective)
    if rule is None:
        reason = asked.others or f"collsim has no rule of {asked.title} for {call.collective}"
        return LibraryChoice(library, asked.version, None, "", "none", note=reason)
    return rule(call)
