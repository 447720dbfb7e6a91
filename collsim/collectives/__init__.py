"""The collectives that collsim knows, each with its contract and its algorithms."""

from collections.abc import Mapping
from typing import Final

from collsim.collectives.all_gather import ALL_GATHER
from collsim.collectives.broadcast import BROADCAST
from collsim.collectives.scatter import SCATTER
from collsim.program import Collective

COLLECTIVES: Final[Mapping[str, Collective]] = {
    collective.name: collective for collective in (BROADCAST, SCATTER, ALL_GATHER)
}
"""Every collective, by its name in `torch.distributed`."""
