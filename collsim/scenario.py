"""A scenario: what to run, on what, as a YAML file or a mapping; validated, then frozen.

    collective: broadcast
    algorithm: binomial          # or {name: knomial, k: 4}, a list of them, `all`, file.py:program
    ranks: 8
    nbytes: 1 MiB
    topology: {kind: star, bandwidth: 10 Gbit/s, latency: 5 us}
    network: {sharing: fair, protocol: rendezvous}
    include: block.yaml           # or a list: files whose fields hold where this one has none

Errors are `ScenarioError`s that name the field, its value, and what is allowed.
"""

import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from collsim.collectives import COLLECTIVES
from collsim.errors import ScenarioError
from collsim.includes import INCLUDE, Origins, merge_included
from collsim.network import Model
from collsim.program import Collective
from collsim.units import parse_size, parse_time
from collsim.yaml_files import first_comment, read_mapping, read_text, read_yaml

DTYPES: Final = {
    **dict.fromkeys(("uint8", "int8"), 1),
    **dict.fromkeys(("float16", "bfloat16", "int16"), 2),
    **dict.fromkeys(("float32", "int32"), 4),
    **dict.fromkeys(("float64", "int64"), 8),
}
"""Element types of the tensors of real runs, with their bytes."""

MAX_RANKS: Final = 16_384
MAX_BYTES: Final = 1 << 50
MAX_MESSAGES: Final = 200_000

Size = Annotated[int, BeforeValidator(parse_size), Field(le=MAX_BYTES)]
Time = Annotated[float, BeforeValidator(parse_time), Field(le=1e6)]


class _Strict(BaseModel):
    """Unknown keys and wrong types are errors; nothing changes after validation."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class NetworkOptions(_Strict):
    """How messages travel: the fields of `collsim.network.Model`, times with units."""

    sharing: Literal["fifo", "fair"] = "fair"
    protocol: Literal["rendezvous", "eager"] = "rendezvous"
    eager_limit: Size | None = None
    overhead: Time = 0.0
    gap: Time = 0.0
    control: Time = 0.0
    store_and_forward: bool = False
    routing: Literal["shortest", "ecmp", "dimension", ""] = ""
    seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _no_storage_in_fair(self) -> "NetworkOptions":
        if self.store_and_forward and self.sharing == "fair":
            raise ValueError(
                "store_and_forward needs sharing: fifo; switches of fair store nothing"
            )
        return self

    def model(self) -> Model:
        """The same as the engines want it."""
        return Model(**self.model_dump())


class AlgorithmChoice(_Strict):
    """An algorithm by name, or a program in a file, with its own parameters."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    name: str = Field(min_length=1, max_length=300)

    @property
    def parameters(self) -> dict[str, Any]:
        """The program's own parameters."""
        return dict(self.model_extra or {})

    @property
    def is_file(self) -> bool:
        """Whether this names a program in a user's file."""
        return ":" in self.name


class Scenario(_Strict):
    """A validated scenario. Make one with `load_scenario` or `parse_scenario`."""

    collective: str = "broadcast"
    algorithm: tuple[AlgorithmChoice, ...] | Literal["all"]
    ranks: int = Field(ge=1, le=MAX_RANKS)
    root: int = Field(0, ge=0)
    nbytes: Size
    dtype: Literal[tuple(DTYPES)] = "uint8"  # type: ignore[valid-type]
    fill: Literal["random", "ones"] = "random"
    acks: bool = False
    engine: Literal["auto", "simpy", "replay"] = "auto"
    segment: Annotated[Size, Field(ge=1)] | Literal["best"] = "best"
    topology: dict[str, Any]
    placement: Literal["block", "round_robin"] | tuple[str, ...] = "block"
    ranks_per_host: int = Field(1, ge=1, le=MAX_RANKS)
    network: NetworkOptions = Field(default_factory=NetworkOptions)
    max_messages: int = Field(MAX_MESSAGES, ge=1, le=50_000_000)
    _folder: Path = PrivateAttr(default=Path())
    _question: str = PrivateAttr(default="")
    _origins: Origins = PrivateAttr(default=Origins())

    @field_validator("collective")
    @classmethod
    def _known_collective(cls, name: str) -> str:
        if name not in COLLECTIVES:
            raise ValueError(f"{name!r} is not a collective; use one of {', '.join(COLLECTIVES)}")
        return name

    @field_validator("algorithm", mode="before")
    @classmethod
    def _as_choices(cls, value: object) -> object:
        if value == "all":
            return value
        listed = value if isinstance(value, list | tuple) else [value]
        if not listed:
            raise ValueError("name at least one algorithm, or write all")
        return tuple({"name": item} if isinstance(item, str) else item for item in listed)

    @field_validator("placement", mode="before")
    @classmethod
    def _as_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _fits_together(self) -> "Scenario":
        if not self.definition.rooted and self.root:
            raise ValueError(f"root: {self.collective} has no root, got {self.root}")
        if self.nbytes % DTYPES[self.dtype]:
            raise ValueError(f"nbytes: {self.nbytes} bytes are no whole number of {self.dtype}")
        if self.root >= self.ranks:
            raise ValueError(f"root: {self.root} is no rank; ranks are 0 to {self.ranks - 1}")
        if isinstance(self.algorithm, tuple):
            known = self.definition.algorithms
            for choice in self.algorithm:
                if not choice.is_file and choice.name not in known:
                    near = difflib.get_close_matches(choice.name, known, 1)
                    hint = f", did you mean {near[0]}?" if near else ";"
                    raise ValueError(
                        f"algorithm: {choice.name!r} is no {self.collective}{hint} "
                        f"use one of {', '.join(known)}, all, or FILE.py:FUNCTION"
                    )
        return self

    @property
    def definition(self) -> Collective:
        """The collective's contract and algorithms."""
        return COLLECTIVES[self.collective]

    @property
    def choices(self) -> tuple[AlgorithmChoice, ...]:
        """The algorithms to run."""
        if isinstance(self.algorithm, tuple):
            return self.algorithm
        return tuple(AlgorithmChoice(name=name) for name in self.definition.algorithms)

    @property
    def folder(self) -> Path:
        """Where files that the scenario names are looked for."""
        return self._folder

    @property
    def question(self) -> str:
        """The first comment of the file, which says what it asks."""
        return self._question

    @property
    def origins(self) -> Origins:
        """Which included file says what."""
        return self._origins

    @property
    def digest(self) -> str:
        """Twelve hex digits that tell scenarios apart."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def parse_scenario(
    mapping: Mapping[str, Any], *, folder: Path | None = None, question: str = ""
) -> Scenario:
    """Validate a mapping with the keys of a scenario file.

    Args:
        mapping: The scenario.
        folder: Where files that it names are looked for; the working directory if not given.
        question: What it asks.

    Raises:
        ScenarioError: Names the first field that is wrong.
    """
    _refuse_include(mapping)
    try:
        scenario = Scenario.model_validate(dict(mapping))
    except ValidationError as error:
        raise _first_error(error) from None
    scenario._folder = folder or Path()
    scenario._question = question
    return scenario


def load_scenario(path: str | Path, settings: Sequence[str] = ()) -> Scenario:
    """Read a scenario from a YAML file.

    Args:
        path: The file.
        settings: Changes to it, each ``key=value`` with dots between nested keys, the value in
            YAML: ``network.sharing=fifo``.

    Raises:
        ScenarioError: The file cannot be read, is no YAML, or a field is wrong.
    """
    path = Path(path)
    mapping, question, origins = read_scenario(path)
    for setting in settings:
        _apply(mapping, setting)
    origins = origins.after([setting.partition("=")[0].strip() for setting in settings])
    try:
        scenario = parse_scenario(mapping, folder=path.parent, question=question)
    except ScenarioError as error:
        raise origins.blame(error) from None
    scenario._origins = origins
    return scenario


def read_scenario(path: Path) -> tuple[dict[str, Any], str, Origins]:
    """A file's mapping, with what it includes, not validated yet; its question; who says what.

    Raises:
        ScenarioError: A file cannot be read, is no YAML, or no mapping.
    """
    text = read_text(path)
    mapping, origins = merge_included(read_mapping(text, str(path)), path)
    return mapping, first_comment(text), origins


def parse_text(text: str, where: str) -> tuple[dict[str, Any], str]:
    """A scenario's YAML as a mapping that is not validated yet, and the question on its first line.

    The text is data only: it comes from nowhere on this machine, so it includes no files.

    Args:
        text: The YAML.
        where: What errors call it.

    Raises:
        ScenarioError: It is no YAML, no mapping, or wants to include files.
    """
    mapping = read_mapping(text, where)
    _refuse_include(mapping)
    return mapping, first_comment(text)


def _refuse_include(mapping: Mapping[str, Any]) -> None:
    if INCLUDE in mapping:
        raise ScenarioError(
            "other files are included on the command line and by load_scenario only", INCLUDE
        )


def _apply(mapping: dict[str, Any], setting: str) -> None:
    """Set one ``key=value`` in a nested mapping."""
    path, sign, value = setting.partition("=")
    keys = path.strip().split(".")
    if not sign or not all(keys):
        raise ScenarioError(f"--set wants key=value, got {setting!r}")
    if keys[0] == INCLUDE:
        raise ScenarioError("--set cannot include files; write it in the scenario's file", INCLUDE)
    for key in keys[:-1]:
        inner = mapping.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ScenarioError(f"is {inner!r}, so {path} cannot be set", key)
        mapping = inner
    mapping[keys[-1]] = read_yaml(value, f"--set {path}")


def _first_error(error: ValidationError) -> ScenarioError:
    """The first complaint of pydantic, in one line."""
    details = error.errors(include_url=False)
    first = next((d for d in details if d["type"] == "extra_forbidden"), details[0])
    place = [str(part) for part in first["loc"] if not _is_branch(part)]
    field = ".".join(place)
    given = first.get("input")
    shown = "" if isinstance(given, Mapping) or first["type"] == "missing" else _short(given)
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        model = NetworkOptions if len(place) > 1 and place[0] == "network" else Scenario
        known = (*model.model_fields, *((INCLUDE,) if model is Scenario else ()))
        near = difflib.get_close_matches(place[-1], known, 1)
        hint = f", did you mean {near[0]}?" if near else ";"
        return ScenarioError(f"unknown key{hint} use {', '.join(known)}", field)
    if first["type"] == "value_error":
        return ScenarioError(message, field)
    if first["type"] == "missing":
        return ScenarioError("is missing", field)
    sentence = message[0].lower() + message[1:]
    return ScenarioError(f"{sentence}, got {shown}" if shown else sentence, field)


def _is_branch(part: int | str) -> bool:
    """Whether pydantic names a branch of a union here, not a key."""
    text = str(part)
    return any(sign in text for sign in "[(") or text in ("int", "str", "none")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
