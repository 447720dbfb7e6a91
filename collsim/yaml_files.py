"""YAML files: their text, their mapping, and the comment on their first line.

Whatever is wrong with a file becomes one line that names it.
"""

from pathlib import Path
from typing import Any, Final

import yaml

from collsim.errors import ScenarioError

MAX_FILE_BYTES: Final = 1_000_000


def read_text(path: Path) -> str:
    """The text of a small file.

    Raises:
        ScenarioError: It cannot be read, is too large, or is not UTF-8.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ScenarioError(f"{path} has more than {MAX_FILE_BYTES:,} bytes")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"cannot read {path}: it is not UTF-8 text") from None


def read_mapping(text: str, where: str) -> dict[str, Any]:
    """The mapping that a YAML text holds.

    Args:
        text: The YAML.
        where: What errors call it.

    Raises:
        ScenarioError: It is no YAML, or no mapping.
    """
    mapping = read_yaml(text, where)
    if not isinstance(mapping, dict):
        raise ScenarioError(f"{where} is not a mapping of keys to values")
    return mapping


def first_comment(text: str) -> str:
    """The comment on the first line, empty if that is none."""
    first = text.lstrip().split("\n", 1)[0]
    return first.lstrip("# ").strip() if first.startswith("#") else ""


def read_yaml(text: str, where: str) -> object:
    """What a YAML text holds.

    Args:
        text: The YAML.
        where: What errors call it.

    Raises:
        ScenarioError: It is no YAML, or has aliases or repeated keys.
    """
    try:
        return yaml.load(text, _Loader)  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ScenarioError(f"{where}{place} is not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).split("\n")[0]
        raise ScenarioError(f"{where} is not valid YAML: {reason}") from None


class _Loader(yaml.SafeLoader):
    """YAML without aliases (a small file could grow without end) and without repeated keys."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.constructor.ConstructorError(None, None, "aliases are not allowed", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key {key.value!r} stands twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)
