"""Measured times from files: tables of bytes and seconds, OSU micro-benchmarks, nccl-tests."""

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from collsim.errors import ScenarioError
from collsim.units import parse_size, parse_time

What = Literal["message", "binomial broadcast", "pipelined broadcast"]

MOST_BYTES: Final = 10_000_000
OSU = re.compile(r"# OSU MPI\S*\s+(?P<test>.*?)\s*Test\b")
OSU_TESTS: Final[dict[str, What]] = {
    "Latency": "message",
    "Broadcast Latency": "binomial broadcast",
}
NCCL_RANK = re.compile(r"#\s+Rank\s+(\d+)\s")


@dataclass(frozen=True)
class Times:
    """What a file holds.

    Attributes:
        source: What wrote it.
        what: Whose times these are. A broadcast's are taken for those of the algorithm that the
            program usually runs.
        n_ranks: How many ranks took part, 0 if the file does not say.
        rows: Bytes and seconds.
    """

    source: str
    what: What
    n_ranks: int
    rows: tuple[tuple[int, float], ...]


def read_times(path: Path) -> Times:
    """Read a file of measured times; what wrote it is recognised.

    Read are tables of ``bytes,seconds`` (with or without a heading; units are understood; columns
    of other names are left alone), osu_latency and osu_bcast of the OSU micro-benchmarks, and
    broadcast_perf of nccl-tests (its out-of-place times).

    Raises:
        ScenarioError: It cannot be read, is none of these, or a line is wrong.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ScenarioError(f"{path} has more than {MOST_BYTES:,} bytes", "from")
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ScenarioError(f"cannot read {path}: {error.strerror}", "from") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"cannot read {path}: it is not UTF-8 text", "from") from None
    for recognises, reads in _FORMATS:
        if recognises(lines):
            times = reads(lines, path)
            if not times.rows:
                raise ScenarioError(f"{path} holds no times", "from")
            return times
    raise ScenarioError(f"{path} is empty", "from")


def _is_osu(lines: list[str]) -> bool:
    return any(map(OSU.match, lines))


def _read_osu(lines: list[str], path: Path) -> Times:
    test = next(found["test"] for line in lines if (found := OSU.match(line)))
    if test not in OSU_TESTS:
        raise ScenarioError(
            f"{path} is of OSU's {test} Test; osu_latency and osu_bcast are read", "from"
        )
    rows = tuple(_row(words, 0, 1, path, number) for number, words in _data(lines))
    return Times(f"OSU {test} Test", OSU_TESTS[test], 0, rows)


def _is_nccl(lines: list[str]) -> bool:
    return any(line.startswith("#") and "algbw" in line and "busbw" in line for line in lines)


def _read_nccl(lines: list[str], path: Path) -> Times:
    """Of broadcast_perf, which has a root and, where a column tells it, no reduction."""
    names = next(line for line in lines if "algbw" in line).lstrip("#").split()
    ranks = {int(found[1]) for line in lines if (found := NCCL_RANK.match(line))}
    rows = []
    for number, words in _data(lines):
        about = dict(zip(names, words, strict=False))
        if about.get("redop", "none") != "none" or about.get("root", "-1") == "-1":
            raise ScenarioError(
                f"{path}, line {number}: no broadcast; of nccl-tests broadcast_perf is read",
                "from",
            )
        rows.append(_row(words, names.index("size"), names.index("time"), path, number))
    return Times("nccl-tests", "pipelined broadcast", len(ranks), tuple(rows))


def _data(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Numbered lines of a benchmark's table, in words: those that begin with a number."""
    for number, line in enumerate(lines, 1):
        words = line.split()
        if words and words[0].isdecimal():
            yield number, words


def _row(words: list[str], size: int, time: int, path: Path, number: int) -> tuple[int, float]:
    """Bytes and seconds of a line whose times are in microseconds."""
    try:
        return int(words[size]), float(words[time]) * 1e-6
    except (IndexError, ValueError):
        line = " ".join(words)[:60]
        raise ScenarioError(
            f"{path}, line {number}: no size and time in {line!r}", "from"
        ) from None


def _is_table(lines: list[str]) -> bool:
    return any(line.strip() for line in lines)


def _read_table(lines: list[str], path: Path) -> Times:
    """Two columns, or those that a heading names bytes and seconds."""
    rows = []
    columns = (0, 1)
    kept = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    kept = [(number, line) for number, line in kept if not line.startswith("#")]
    cells = csv.reader((line for _, line in kept), skipinitialspace=True)
    for (number, _), row in zip(kept, cells, strict=True):
        if number == kept[0][0] and (found := _named_columns(row)):
            columns = found
            continue
        if len(row) <= max(columns):
            raise ScenarioError(
                f"{path}, line {number}: expected bytes,seconds, got {','.join(row)[:60]!r}", "from"
            )
        size, time = (row[column].strip() for column in columns)
        try:
            rows.append((parse_size(_plain(size)), parse_time(_plain(time))))
        except ValueError as error:
            raise ScenarioError(f"{path}, line {number}: {error}", "from") from None
    return Times("table", "message", 0, tuple(rows))


def _named_columns(row: list[str]) -> tuple[int, int] | None:
    names = [name.strip().lower() for name in row]
    if "bytes" in names and "seconds" in names:
        return names.index("bytes"), names.index("seconds")
    return None


def _plain(text: str) -> str | float:
    """Numbers without a unit as numbers: bytes, or seconds."""
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() else value


_FORMATS: Final[
    tuple[tuple[Callable[[list[str]], bool], Callable[[list[str], Path], Times]], ...]
] = ((_is_osu, _read_osu), (_is_nccl, _read_nccl), (_is_table, _read_table))
