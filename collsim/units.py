"""Read and write quantities with units: "4 MiB", "10 Gbit/s", "5 us".

This is the only place that reads units. Decimal and binary prefixes differ (1 MB = 10^6 B, 1 MiB =
2^20 B), and so do bits and bytes (10 Gbit/s = 1.25·10^9 B/s): units are checked, never guessed.
"""

import difflib
import math
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pint import UnitRegistry

_QUANTITY: Final = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(.*?)\s*")
_UNIT: Final = re.compile(r"[A-Za-zµμ]{1,12}(/s)?")
_DEFINITIONS: Final = (
    *("kilo- = 1e3 = k-", "mega- = 1e6 = M-", "giga- = 1e9 = G-", "tera- = 1e12 = T-"),
    *("kibi- = 1024 = Ki-", "mebi- = 1048576 = Mi-", "gibi- = 1073741824 = Gi-"),
    *("milli- = 1e-3 = m-", "micro- = 1e-6 = u- = µ- = μ-", "nano- = 1e-9 = n-"),
    *("pico- = 1e-12 = p-", "second = [time] = s"),
    *("byte = [information] = B = bytes", "bit = byte / 8 = b = bits"),
)
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "kB", "MB", "GB")
_RATES: Final = ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "B/s", "kB/s", "MB/s", "GB/s")
_RATES_BINARY: Final = ("KiB/s", "MiB/s", "GiB/s")
_TIMES: Final = ("s", "ms", "us", "ns", "ps")


def parse_size(text: str | int | float) -> int:
    """Bytes from "4 MiB", "1 kB", or a whole number of bytes.

    Raises:
        ValueError: Not a size, negative, or not a whole number of bytes.

    >>> parse_size("4 MiB"), parse_size(17)
    (4194304, 17)
    """
    nbytes = _parse(text, "a size", "byte", _SIZES, plain="bytes")
    if nbytes != int(nbytes):
        raise ValueError(f"{text!r} is {nbytes:g} bytes; a size is a whole number of bytes")
    return int(nbytes)


def parse_bandwidth(text: str | int | float) -> float:
    """Bytes per second from "10 Gbit/s", "1.2 GB/s", or a plain number of bytes per second.

    Raises:
        ValueError: Not a bandwidth, or negative.

    >>> parse_bandwidth("10 Gbit/s")
    1250000000.0
    """
    return _parse(text, "a bandwidth", "byte / second", _RATES + _RATES_BINARY, plain="bytes/s")


def parse_time(text: str | int | float) -> float:
    """Seconds from "5 us", "0.3 ms", or a plain number of seconds.

    Raises:
        ValueError: Not a time, or negative.

    >>> parse_time("5 us")
    5e-06
    """
    return _parse(text, "a time", "second", _TIMES, plain="seconds")


def _parse(
    text: str | int | float, what: str, target: str, allowed: tuple[str, ...], plain: str
) -> float:
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"{text!r} is not {what}, such as 5 {allowed[1]}")
    if isinstance(text, int | float):
        return _checked(float(text), text, what)
    match = _QUANTITY.fullmatch(text) if len(text) <= 60 else None
    if match is None:
        raise ValueError(f"{_short(text)} is not {what}, such as 5 {allowed[1]}")
    number, unit = float(match[1].replace("_", "")), match[2]
    if not unit:
        raise ValueError(f"{text!r} has no unit; use one of {', '.join(allowed)} (plain: {plain})")
    return _checked(_round(number * _factor(text, unit, target, allowed)), text, what)


def _round(value: float) -> float:
    """Undo the last-digit noise of a conversion: 5 us is 5e-06, not 4.9999999999999996e-06."""
    return float(f"{value:.15g}")


@cache
def _registry() -> "UnitRegistry[float]":
    from pint import UnitRegistry  # late: 0.2 s

    registry: UnitRegistry[float] = UnitRegistry(None, case_sensitive=True)
    for definition in _DEFINITIONS:
        registry.define(definition)
    return registry


@cache
def _factor(text: str, unit: str, target: str, allowed: tuple[str, ...]) -> float:
    import pint

    hint = f"use one of {', '.join(allowed)}"
    try:
        if not _UNIT.fullmatch(unit):
            raise pint.UndefinedUnitError(unit)
        read = _registry().Quantity(1.0, unit)
        if target == "byte" and "bit" in str(read.units):
            raise ValueError(f"{text!r} counts bits, and a size is in bytes; {hint}")
        factor = float(read.to(target).magnitude)
        if target != "second" and factor < 0.125:  # a millibit, where a megabit was meant
            raise pint.UndefinedUnitError(unit)
        return factor
    except pint.UndefinedUnitError:
        meant_rate = unit.replace("bps", "bit/s")
        near = [name for name in allowed if name.lower() == meant_rate.lower()]
        near = near or difflib.get_close_matches(meant_rate, allowed, 1, 0.6)
        meant = f", did you mean {near[0]}?" if near else ";"
        raise ValueError(f"{text!r}: unknown unit {unit!r}{meant} {hint}") from None
    except pint.DimensionalityError:
        lacks = "it lacks the /s; " if "/" in target and read.check("[information]") else ""
        raise ValueError(f"{text!r} has the wrong kind of unit; {lacks}{hint}") from None


def _checked(value: float, text: object, what: str) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not {what}: it must be finite")
    if value < 0:
        raise ValueError(f"{text!r} is negative; {what} cannot be")
    return value


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def spell_size(nbytes: float) -> str:
    """Bytes with a binary unit: "64 KiB", "1.5 MiB", "1000 B".

    >>> spell_size(65536), spell_size(1000)
    ('64 KiB', '1000 B')
    """
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if nbytes >= 1 << power:
            return f"{_digits(nbytes / (1 << power))} {unit}"
    return f"{nbytes:.0f} B"


def spell_time(seconds: float) -> str:
    """Seconds with a unit that suits: "1.35 ms", "22.3 us".

    >>> spell_time(0.0013476), spell_time(0.0)
    ('1.348 ms', '0 s')
    """
    return _spell(seconds, "s", {1.0: "", 1e-3: "m", 1e-6: "µ", 1e-9: "n", 1e-12: "p"})


def spell_bandwidth(rate: float) -> str:
    """Bytes per second as bits per second, the way networks are sold: "10 Gbit/s".

    >>> spell_bandwidth(1.25e9)
    '10 Gbit/s'
    """
    return _spell(rate * 8, "bit/s", {1e12: "T", 1e9: "G", 1e6: "M", 1e3: "k", 1.0: ""})


def _spell(value: float, unit: str, prefixes: Mapping[float, str]) -> str:
    if not math.isfinite(value):
        return "–"
    for scale, prefix in prefixes.items():
        if value >= scale * 0.99995:
            return f"{_digits(value / scale)} {prefix}{unit}"
    return f"0 {unit}" if value == 0 else f"{value:.3g} {unit}"


def _digits(value: float) -> str:
    """Four significant digits, without trailing zeros."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"
