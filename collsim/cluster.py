"""A scenario's cluster: its topology built, ranks placed on hosts, connected to a network."""

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from collsim.errors import ScenarioError
from collsim.network import Network, connect
from collsim.scenario import Scenario
from collsim.topology import (
    LINK_PRESETS,
    MACHINE_PRESETS,
    TOPOLOGIES,
    override,
    place,
    read_topology,
)
from collsim.units import parse_bandwidth, parse_time

if TYPE_CHECKING:
    import networkx as nx

Row = TypeVar("Row")

_LINK_KEYS = ("bandwidth", "latency", "duplex", "memory_bandwidth", "memory_latency")
_RESERVED = ("kind", "file", "preset", "link", "links")


def build_network(scenario: Scenario) -> Network:
    """The network of a scenario.

    Raises:
        ScenarioError: The topology cannot be built, or the ranks do not fit on it.
    """
    try:
        return _build(scenario)
    except ScenarioError as error:
        raise scenario.origins.blame(error) from None


def _build(scenario: Scenario) -> Network:
    graph = _build_graph(scenario)
    hosts = [node for node, about in graph.nodes(data=True) if about["kind"] == "host"]
    how = scenario.placement
    placement = place(
        hosts,
        scenario.ranks,
        how=how if isinstance(how, str) else list(how),
        ranks_per_host=scenario.ranks_per_host,
    )
    changes = scenario.topology.get("links") or {}
    if changes:
        graph = override(graph, _changes(changes, placement))
    return connect(graph, placement, scenario.network.model())


def _build_graph(scenario: Scenario) -> "nx.DiGraph[str]":
    wanted = dict(scenario.topology)
    sources = [key for key in ("kind", "file", "preset") if key in wanted]
    if len(sources) != 1:
        given = " and ".join(sources) or ", ".join(map(str, wanted)) or "nothing"
        raise ScenarioError(f"name one of kind, file and preset, got {given}", "topology")
    if "file" in wanted:
        _refuse(wanted, ("file", "links"), "topology")
        path = scenario.folder / str(wanted["file"])
        return read_topology(path, parse_bandwidth=parse_bandwidth, parse_latency=parse_time)
    if "preset" in wanted:
        preset = _lookup(MACHINE_PRESETS, wanted["preset"], "topology.preset")
        wanted = {"kind": preset.kind, **preset.parameters, **wanted}
    if "link" in wanted:
        link = _lookup(LINK_PRESETS, wanted["link"], "topology.link")
        wanted = {"bandwidth": link.bandwidth, "latency": link.latency, **wanted}
    builder = _lookup(TOPOLOGIES, wanted["kind"], "topology.kind")
    parameters = _parameters(builder, str(wanted["kind"]), wanted, scenario)
    try:
        return builder(**parameters)
    except (ValueError, TypeError) as error:
        raise ScenarioError(str(error), "topology") from None


def _parameters(
    builder: "Callable[..., nx.DiGraph[str]]",
    kind: str,
    wanted: Mapping[str, Any],
    scenario: Scenario,
) -> dict[str, Any]:
    """The builder's arguments, units read, `hosts` filled in with as many as the ranks need."""
    known = inspect.signature(builder).parameters
    _refuse(wanted, (*known, *_RESERVED), "topology", kind)
    parameters = {key: _read(key, value) for key, value in wanted.items() if key not in _RESERVED}
    if "hosts" in known and "hosts" not in parameters:
        per_host = scenario.ranks_per_host
        parameters["hosts"] = -(-scenario.ranks // per_host)
    return parameters


def _read(key: str, value: object) -> object:
    """A topology's parameter: bandwidths and latencies with units, the rest as it is."""
    try:
        if key.endswith("bandwidth"):
            return parse_bandwidth(value)  # type: ignore[arg-type]
        if key.endswith("latency"):
            return parse_time(value)  # type: ignore[arg-type]
    except ValueError as error:
        raise ScenarioError(str(error), f"topology.{key}") from None
    return value


def _changes(changes: object, placement: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Overrides with units read and "rank 3" turned into its host."""
    if not isinstance(changes, dict):
        raise ScenarioError(
            f"expected link: {{bandwidth: …, latency: …}}, got {changes!r}", "topology.links"
        )
    read: dict[str, dict[str, Any]] = {}
    for selector, values in changes.items():
        field = f"topology.links.{selector}"
        if not isinstance(values, dict):
            raise ScenarioError(f"expected {{bandwidth: …, latency: …}}, got {values!r}", field)
        _refuse(values, _LINK_KEYS, field)
        name = str(selector)
        word, _, number = name.partition(" ")
        if word == "rank" and number.isdecimal():
            if int(number) >= len(placement):
                raise ScenarioError(f"ranks are 0 to {len(placement) - 1}", field)
            name = placement[int(number)]
        read[name] = {key: _read(f"links.{selector}.{key}", value) for key, value in values.items()}
    return read


def _refuse(
    mapping: Mapping[Any, Any], allowed: tuple[str, ...], field: str, kind: str = ""
) -> None:
    """Refuse unknown keys."""
    for key in mapping:
        if key not in allowed:
            near = difflib.get_close_matches(str(key), allowed, 1)
            hint = f", did you mean {near[0]}?" if near else ";"
            of = f" of {kind}" if kind else ""
            raise ScenarioError(f"unknown key{of}{hint} use {', '.join(allowed)}", f"{field}.{key}")


def _lookup(table: Mapping[str, Row], name: object, field: str) -> Row:
    """A row of a table by name."""
    if isinstance(name, str) and name in table:
        return table[name]
    near = difflib.get_close_matches(str(name), table, 1)
    hint = f", did you mean {near[0]}?" if near else ";"
    raise ScenarioError(f"{name!r} is unknown{hint} use one of {', '.join(table)}", field)
