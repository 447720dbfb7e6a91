"""Collectives on real `torch.distributed` processes with the backend gloo.

A `GlooServer` is a process of its own that imports torch once and forks ranks from it; a
`RankGroup` is a set of ranks that runs one piece of work after the other. Under torchrun the ranks
are those that it has started, on any machines, and the `Leader` on rank 0 makes groups of them.
Linux only; torch is needed, and is imported in those processes alone.
"""

from collsim.gloo.execute import GlooServer, execute, forked_group, native
from collsim.gloo.group import RankGroup
from collsim.gloo.plans import Execution
from collsim.gloo.torchrun import Leader, torchrun_leader
from collsim.gloo.traffic import native_wire_bytes, wire_bytes

__all__ = [
    "Execution",
    "GlooServer",
    "Leader",
    "RankGroup",
    "execute",
    "forked_group",
    "native",
    "native_wire_bytes",
    "torchrun_leader",
    "wire_bytes",
]
