"""Broadcast: one rank's tensor, copied to every rank."""

from typing import Final

from collsim.collectives.broadcast import (
    circulant,
    composed,
    optimal,
    pipelined,
    trees,
    two_level,
    two_trees,
)
from collsim.collectives.contracts import everything, one_block, root_only
from collsim.program import Collective

FAMILIES: Final = (trees, pipelined, composed, optimal, two_level, two_trees, circulant)
"""The modules of algorithms, simplest first."""

BROADCAST: Final = Collective(
    name="broadcast",
    before=root_only,
    after=everything,
    blocks=one_block,
    rooted=True,
    algorithms={name: row for family in FAMILIES for name, row in family.ALGORITHMS.items()},
)
"""The contract of broadcast and its algorithms."""
