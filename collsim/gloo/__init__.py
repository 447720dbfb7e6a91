"""Collectives on real `torch.distributed` processes with the backend gloo, on this machine.

A `GlooServer` is a process of its own that imports torch once and forks ranks from it; a
`RankGroup` is a set of ranks that runs one piece of work after the other. Linux only; torch is
needed, and is imported in those processes alone.
"""

from collsim.gloo.execute import GlooServer, execute, forked_group, native
from collsim.gloo.group import RankGroup
from collsim.gloo.plans import Execution
from collsim.gloo.traffic import native_wire_bytes, wire_bytes

__all__ = [
    "Execution",
    "GlooServer",
    "RankGroup",
    "execute",
    "forked_group",
    "native",
    "native_wire_bytes",
    "wire_bytes",
]
