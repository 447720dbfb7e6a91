"""What a scenario file includes: mappings of other files, merged deeply below its own.

Files are merged in the order in which they are named, each after those that it includes itself;
later ones win. Mappings merge key by key, anything else replaces what was there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Final

from collsim.errors import ScenarioError
from collsim.yaml_files import read_mapping, read_text

INCLUDE: Final = "include"
MOST_INCLUDES: Final = 100
"""Files that one scenario may include; a few that each include the next twice would explode."""

_SOURCES = ("kind", "file", "preset")
"""A topology names one of them, so a later one replaces the others."""


@dataclass(frozen=True)
class Origins:
    """Which file says what. Scenarios are equal however their fields are spread over files.

    Attributes:
        layers: Each file's own mapping by the file's name, in the order of merging; the name of
            the scenario's own file is empty.
        settings: Keys that were set afterwards, dotted.
    """

    layers: tuple[tuple[str, Mapping[str, Any]], ...] = field(default=(), compare=False)
    settings: tuple[str, ...] = field(default=(), compare=False)

    def after(self, settings: Sequence[str]) -> "Origins":
        """The same once these dotted keys were set."""
        return replace(self, settings=tuple(settings))

    def blame(self, error: ScenarioError) -> ScenarioError:
        """The error with the included files that say what it complains about, if any do."""
        key = error.field or str(error).partition(":")[0]
        if any(f"{key}.".startswith(f"{setting}.") for setting in self.settings):
            return error
        names = self._holders(key.split("."))
        included = [name for name in names if name]
        if not included:
            return error
        how = "set" if len(included) == len(names) else "partly set"
        message = str(error).removeprefix(f"{error.field}: ")
        return ScenarioError(f"{message} ({how} in {' and '.join(included)})", error.field)

    def _holders(self, keys: list[str]) -> list[str]:
        """The files that say something of the key, or of the deepest mapping around it."""
        for depth in range(len(keys), 0, -1):
            names: list[str] = []
            for name, layer in self.layers:
                found, value = _look_up(layer, keys[:depth])
                if found:
                    # What is no mapping replaced all before; mappings were merged with it.
                    names = [*names, name] if isinstance(value, dict) else [name]
            if names:
                return list(dict.fromkeys(names))
        return []


def merge_included(mapping: Mapping[str, Any], path: Path) -> tuple[dict[str, Any], Origins]:
    """A scenario file's mapping merged with what it includes.

    Args:
        mapping: What the file holds.
        path: The file; what it includes is relative to its folder.

    Raises:
        ScenarioError: An included file cannot be read, is no mapping, or includes itself.
    """
    reader = _Reader(path.parent)
    reader.add(mapping, PurePath(), "", (path,))
    merged: dict[str, Any] = {}
    for _, layer in reader.layers:
        merged = _merge(_without_source(merged, layer), layer)
    return merged, Origins(tuple(reader.layers))


class _Reader:
    """Reads a tree of files, depth first, so that who includes comes after the included."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.layers: list[tuple[str, Mapping[str, Any]]] = []
        self.files = 0

    def add(
        self, mapping: Mapping[str, Any], place: PurePath, name: str, chain: tuple[Path, ...]
    ) -> None:
        """Add what a mapping includes, then the mapping.

        Args:
            mapping: What the file holds.
            place: The file's folder, relative to that of the scenario.
            name: What errors call the file.
            chain: The files from the scenario's to this one, each included by the one before.
        """
        own = {key: value for key, value in mapping.items() if key != INCLUDE}
        for wanted in _paths(mapping, chain[-1]):
            try:
                self._include(place / wanted, chain)
            except ScenarioError as error:
                if error.field:
                    raise
                raise ScenarioError(f"{error} (set in {chain[-1]})", INCLUDE) from None
        self.layers.append((name, _rebased(own, place)))

    def _include(self, file: PurePath, chain: tuple[Path, ...]) -> None:
        path = self.folder / file
        text = _read(path)
        self.files += 1
        if self.files > MOST_INCLUDES:
            raise ScenarioError(f"more than {MOST_INCLUDES} files are included")
        if any(path.samefile(other) for other in chain):
            circle = " → ".join(str(each) for each in (*chain, path))
            raise ScenarioError(f"{path} includes itself: {circle}")
        self.add(read_mapping(text, str(path)), file.parent, str(path), (*chain, path))


def _paths(mapping: Mapping[str, Any], path: Path) -> list[str]:
    """The files that a mapping includes."""
    wanted = mapping.get(INCLUDE, [])
    listed = wanted if isinstance(wanted, list) else [wanted]
    if not all(isinstance(each, str) and each for each in listed):
        raise ScenarioError(
            f"expected a file or a list of files, got {wanted!r} (set in {path})", INCLUDE
        )
    return listed


def _read(path: Path) -> str:
    """An included file's text; unlike the scenario's own it must not be a pipe or a device."""
    try:
        if path.exists() and not path.is_file():
            raise ScenarioError(f"{path} is not a file")
        return read_text(path)
    except (OSError, ValueError) as error:  # a closed folder, or a name with a zero byte
        raise ScenarioError(f"cannot read {str(path)!r}: {error}") from None


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both as a new mapping; what is above wins."""
    merged = dict(below)
    for key, value in above.items():
        if isinstance(value, dict):
            inner = merged.get(key)
            merged[key] = _merge(inner if isinstance(inner, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def _without_source(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """What is below without its topology's kind, file or preset if that above names its own."""
    old, new = below.get("topology"), above.get("topology")
    if not (isinstance(old, dict) and isinstance(new, dict) and any(k in new for k in _SOURCES)):
        return below
    return {**below, "topology": {k: v for k, v in old.items() if k not in _SOURCES}}


def _rebased(mapping: dict[str, Any], place: PurePath) -> dict[str, Any]:
    """A mapping whose topology file and programs are named as from the scenario's folder."""
    if place == PurePath():
        return mapping
    rebased = dict(mapping)
    topology = mapping.get("topology")
    if isinstance(topology, dict) and isinstance(topology.get("file"), str):
        rebased["topology"] = {**topology, "file": (place / topology["file"]).as_posix()}
    if "algorithm" in mapping:
        rebased["algorithm"] = _rebased_algorithm(mapping["algorithm"], place)
    return rebased


def _rebased_algorithm(value: object, place: PurePath) -> object:
    """An algorithm in any form that scenarios allow; FILE.py:FUNCTION names a file."""
    if isinstance(value, list):
        return [_rebased_algorithm(each, place) for each in value]
    if isinstance(value, dict) and "name" in value:
        return {**value, "name": _rebased_algorithm(value["name"], place)}
    if isinstance(value, str) and ":" in value:
        return (place / value).as_posix()
    return value


def _look_up(mapping: Mapping[str, Any], keys: Sequence[str]) -> tuple[bool, object]:
    """Whether a mapping has a nested key, and its value; keys of YAML may be numbers."""
    value: object = mapping
    for wanted in keys:
        if not isinstance(value, dict):
            return True, value  # the error is inside of this value
        found = [key for key in value if str(key) == wanted]
        if not found:
            return False, None
        value = value[found[0]]
    return True, value
