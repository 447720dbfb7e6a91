"""Topologies from files: GraphML, or a plain list of edges.

The list of edges has one link a line, both directions at once; ``->`` makes it one direction::

    # two hosts on a switch
    switch s0
    host h0 memory_bandwidth=20e9 memory_latency=0.3e-6
    h0 s0   bandwidth=1.25e9 latency=5e-6
    h1 s0   bandwidth="10 Gbit/s" latency="5 us" duplex=half
    h1 -> h0  bandwidth=1e9 latency=1e-6

``#`` begins a comment. Nodes are hosts unless a line declares them ``switch``; they are numbered
in the order in which the file first names them. How values are read is up to the caller: as plain
numbers of bytes/s and seconds, or with units. Quotes hold a value with a space together. No node
can be called ``host`` or ``switch``.
"""

import re
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import networkx as nx

from collsim.errors import ScenarioError
from collsim.topology.graphs import from_graph

if TYPE_CHECKING:
    from collsim.topology.wiring import Topology

Reader = Callable[[str | int | float], float]

MAX_FILE_BYTES = 50_000_000
"""Larger files are refused: no topology of allowed size needs as much."""

NODE_KEYS = ("memory_bandwidth", "memory_latency")
EDGE_KEYS = ("bandwidth", "latency", "duplex")

_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')


def read_topology(
    path: str | Path, parse_bandwidth: Reader = float, parse_latency: Reader = float
) -> "Topology":
    """Read a topology from a file: GraphML if it begins with ``<``, else a list of edges.

    Args:
        path: The file. In GraphML, nodes may have ``kind`` (``host``, the default, or
            ``switch``), ``x`` and ``y``; edges have ``bandwidth`` and ``latency``, and may have
            ``duplex``. Attributes other than those of `from_graph` are left out.
        parse_bandwidth: Makes bytes/s of a value; raises ValueError if it cannot.
        parse_latency: Makes seconds of a value; raises ValueError if it cannot.

    Raises:
        ScenarioError: Names the file, the line or edge, the value and what is allowed.
    """
    path = Path(path)
    text = _read(path)
    readers = {"bandwidth": parse_bandwidth, "latency": parse_latency}
    if text.lstrip().startswith("<"):
        graph = _read_graphml(path, text, readers)
    else:
        graph = _EdgeList(path, readers).read(text)
    graph.graph.setdefault("name", path.stem)
    try:
        return from_graph(graph)
    except ValueError as error:
        _refuse(path, str(error))


def _refuse(path: Path, message: str) -> NoReturn:
    raise ScenarioError(f"{path}: {message}", "topology.file") from None


def _read(path: Path) -> str:
    """The text of a file."""
    try:
        if path.exists() and not path.is_file():
            _refuse(path, "is not a file" if not path.is_dir() else "is a folder, not a file")
        if path.stat().st_size > MAX_FILE_BYTES:
            _refuse(path, f"has more than {MAX_FILE_BYTES:,} bytes, which are allowed")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        _refuse(path, "is no text in UTF-8; write GraphML or a list of edges")
    except (OSError, ValueError) as error:
        _refuse(path, f"cannot be read: {getattr(error, 'strerror', None) or error}")
    if "\0" in text:
        _refuse(path, "is no text: it has zero bytes; write GraphML or a list of edges")
    return text


def _value(readers: dict[str, Reader], key: str, value: Any) -> Any:
    """A value as a number if its key says so; ValueError if it cannot be read."""
    reader = readers.get(key.removeprefix("memory_"))
    if reader is None:
        return value
    try:
        return reader(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{key}={value!r}: {error}") from None


def _read_graphml(path: Path, text: str, readers: dict[str, Reader]) -> "nx.Graph[str]":
    if re.search(r"<!(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        _refuse(path, "has a <!DOCTYPE> or <!ENTITY>, which is not allowed; take it out")
    try:
        with warnings.catch_warnings():  # of keys without a type, which are legal: text
            warnings.simplefilter("ignore")
            graph: nx.Graph[str] = nx.parse_graphml(text)
    except Exception as error:  # networkx lets its own slips through, as KeyError and others
        _refuse(path, f"is not GraphML: {type(error).__name__}: {error}")
    if graph.is_multigraph():
        u, v = next(ends for ends, count in Counter(graph.edges()).items() if count > 1)
        _refuse(path, f"edge {u} {v}: is there twice; write one with the sum of the bandwidths")
    node_default = graph.graph.get("node_default", {})
    edge_default = graph.graph.get("edge_default", {})
    try:
        for node, attributes in graph.nodes(data=True):
            where = f"node {node}"
            _complete(attributes, node_default, NODE_KEYS, readers)
        for u, v, attributes in graph.edges(data=True):
            where = f"edge {u} {v}"
            _complete(attributes, edge_default, EDGE_KEYS, readers)
    except ValueError as error:
        _refuse(path, f"{where}: {error}")
    return graph


def _complete(
    attributes: dict[str, Any],
    default: dict[str, Any],
    keys: tuple[str, ...],
    readers: dict[str, Reader],
) -> None:
    """Fill in the defaults of the keys of GraphML, and make numbers of what should be numbers."""
    for key, value in default.items():
        attributes.setdefault(key, value)
    for key in keys:
        if key in attributes:
            attributes[key] = _value(readers, key, attributes[key])


def _short(text: str) -> str:
    """A piece of a file, quoted, cut to what a message can hold."""
    text = text.strip()
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


class _EdgeList:
    """A list of edges as it is being read; knows the line it is at."""

    def __init__(self, path: Path, readers: dict[str, Reader]) -> None:
        self.path = path
        self.readers = readers
        self.number = 0
        self.graph: nx.DiGraph[str] = nx.DiGraph()
        self.line_of: dict[tuple[str, ...], int] = {}

    def read(self, text: str) -> "nx.DiGraph[str]":
        """The graph that `text` lists."""
        for self.number, line in enumerate(text.splitlines(), start=1):
            content = line.partition("#")[0]
            if content.count('"') % 2:
                self.refuse(f"a quote is not closed in {_short(content)}")
            words = _WORD.findall(content)
            names = [word for word in words if "=" not in word]
            pairs = [word for word in words if "=" in word]
            if words[: len(names)] != names:
                self.refuse(f"names come before key=value, got {_short(content)}")
            if words:
                self._add(names, pairs)
        return self.graph

    def refuse(self, message: str) -> NoReturn:
        """Raise, naming file and line."""
        _refuse(self.path, f"line {self.number}: {message}")

    def _add(self, names: list[str], pairs: list[str]) -> None:
        match names:
            case ["host" | "switch" as kind, name]:
                allowed = NODE_KEYS if kind == "host" else ()
                self._once((name,))
                self.graph.add_node(name, kind=kind, **self._values(pairs, allowed))
            case [u, "->", v]:
                self._join(u, v, self._values(pairs, EDGE_KEYS))
            case [u, v] if "->" not in names:
                values = self._values(pairs, EDGE_KEYS)
                self._join(u, v, values)
                if u != v:
                    self._join(v, u, values)
            case _:
                self.refuse(
                    "expected 'u v key=value …', 'u -> v key=value …', 'host NAME' or "
                    f"'switch NAME', got {_short(' '.join([*names, *pairs]))}"
                )

    def _join(self, u: str, v: str, values: dict[str, Any]) -> None:
        self._once((u, v))
        self.graph.add_edge(u, v, **values)

    def _once(self, key: tuple[str, ...]) -> None:
        """Refuse what an earlier line says already."""
        before = self.line_of.setdefault(key, self.number)
        if before != self.number:
            self.refuse(f"{' '.join(key)} is in line {before} already")

    def _values(self, pairs: list[str], allowed: tuple[str, ...]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for pair in pairs:
            key, _, value = pair.replace('"', "").partition("=")
            if key not in allowed or key in values:
                what = "is given twice" if key in values else "is not allowed here"
                self.refuse(f"{_short(pair)} {what}; use {', '.join(allowed) or 'none'}")
            try:
                values[key] = _value(self.readers, key, value)
            except ValueError as error:
                self.refuse(str(error))
        return values
