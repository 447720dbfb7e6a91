"""What became of one rank that did a piece of work, whether it went well or not."""

import re
from dataclasses import dataclass
from typing import Any, Final, Literal

Kind = Literal["returned", "raised", "timed out", "lost a peer", "aborted", "killed", "hung"]

_NOISE: Final = re.compile(
    r"\[(enforce fail at )?\S+\.(cc|h):\d+\] ?| ?<\S+ object at 0x[0-9a-f]+>"
)
"""Where in gloo's source an error arose, and where in memory an object lies."""


@dataclass(frozen=True)
class Fate:
    """What became of a rank.

    Attributes:
        kind: In a word: it returned, raised an error of its own, gave up waiting for another rank,
            lost its connection to one, was ended by a signal (its own abort, or another), or said
            nothing at all in time.
        text: The error's type and first line, how the process ended, or of what it warned.
        value: What it returned.
    """

    kind: Kind
    text: str = ""
    value: Any = None


def of_error(text: str) -> Fate:
    """The fate of a rank that raised; `text` is "raised Type: first line"."""
    said = _shortened(text.removeprefix("raised "))
    if any(sign in said for sign in ("onnection closed", "onnection reset", "roken pipe")):
        return Fate("lost a peer", said)
    if "imed out" in said or "timeout" in said:
        return Fate("timed out", said)
    return Fate("raised", said)


def of_death(text: str) -> Fate:
    """The fate of a rank whose process ended; `text` is "died: signal SIGABRT (last words)"."""
    said = _shortened(text.removeprefix("died: "))
    return Fate("aborted" if said.startswith("signal SIGABRT") else "killed", said)


def _shortened(text: str) -> str:
    return _NOISE.sub("", text)
