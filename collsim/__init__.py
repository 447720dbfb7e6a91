"""collsim: simulate, verify, draw and really run collective communication algorithms.

    >>> from collsim import parse_scenario, run
    >>> scenario = parse_scenario({
    ...     "algorithm": ["flat", "binomial"], "ranks": 8, "nbytes": "1 MiB",
    ...     "topology": {"kind": "star", "bandwidth": "10 Gbit/s", "latency": "5 us"},
    ... })
    >>> run(scenario).best.plan.title
    'binomial'

Names are imported when they are first used, so that the command line starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collsim.checking import check as check
    from collsim.cluster import build_network as build_network
    from collsim.collectives import COLLECTIVES as COLLECTIVES
    from collsim.errors import CollsimError as CollsimError
    from collsim.gloo import execute as execute
    from collsim.network import Model as Model
    from collsim.network import connect as connect
    from collsim.program import ALL as ALL
    from collsim.program import Algorithm as Algorithm
    from collsim.program import Rank as Rank
    from collsim.program import Recv as Recv
    from collsim.program import Send as Send
    from collsim.program import Step as Step
    from collsim.runner import run as run
    from collsim.scenario import load_scenario as load_scenario
    from collsim.scenario import parse_scenario as parse_scenario
    from collsim.schedule import Schedule as Schedule
    from collsim.simulation import simulate as simulate
    from collsim.timeline import Timeline as Timeline
    from collsim.topology import TOPOLOGIES as TOPOLOGIES
    from collsim.tracing import trace as trace
    from collsim.verification import verify as verify

_HOMES = {
    "ALL": "program",
    "Algorithm": "program",
    "COLLECTIVES": "collectives",
    "CollsimError": "errors",
    "Model": "network",
    "Rank": "program",
    "Recv": "program",
    "Schedule": "schedule",
    "Send": "program",
    "Step": "program",
    "TOPOLOGIES": "topology",
    "Timeline": "timeline",
    "build_network": "cluster",
    "check": "checking",
    "connect": "network",
    "execute": "gloo",
    "load_scenario": "scenario",
    "parse_scenario": "scenario",
    "run": "runner",
    "simulate": "simulation",
    "trace": "tracing",
    "verify": "verification",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
