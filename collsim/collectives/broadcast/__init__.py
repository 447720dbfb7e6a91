"""Broadcast: one rank's tensor, copied to every rank."""

from typing import Final

from collsim.collectives.broadcast import pipelined, trees
from collsim.collectives.contracts import everything, one_block, root_only
from collsim.program import Collective

BROADCAST: Final = Collective(
    name="broadcast",
    before=root_only,
    after=everything,
    blocks=one_block,
    rooted=True,
    algorithms={**trees.ALGORITHMS, **pipelined.ALGORITHMS},
)
"""The contract of broadcast and its algorithms."""
