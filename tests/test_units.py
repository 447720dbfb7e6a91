"""Units: what is read, and what each mistake is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.units import (
    parse_bandwidth,
    parse_size,
    parse_time,
    spell_bandwidth,
    spell_size,
    spell_time,
)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("1 MiB", 1 << 20), ("1 MB", 10**6), ("64KiB", 65536), ("0 B", 0), ("1e3 B", 1000),
     (17, 17), ("2 GiB", 2 << 30), ("1_000 B", 1000), ("0.5 KiB", 512)],
)  # fmt: skip
def test_sizes(text: str | int, nbytes: int) -> None:
    assert parse_size(text) == nbytes


@pytest.mark.parametrize(
    ("text", "rate"),
    [("10 Gbit/s", 1.25e9), ("10 Gb/s", 1.25e9), ("1 GB/s", 1e9), ("1 GiB/s", 2.0**30), (5, 5.0),
     ("100 Mbit/s", 12.5e6)],
)  # fmt: skip
def test_bandwidths(text: str | int, rate: float) -> None:
    assert parse_bandwidth(text) == rate


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5 us", 5e-6), ("5 µs", 5e-6), ("5 μs", 5e-6), ("0.3 ms", 3e-4), (2, 2.0), ("0 s", 0.0),
     ("40 ns", 4e-8), ("7 ps", 7e-12)],
)  # fmt: skip
def test_times(text: str | int, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_size, "1 Mib", "counts bits, and a size is in bytes; use one of B, KiB"),
        (parse_size, "10 Gb", "counts bits"),
        (parse_size, "1 KB", "unknown unit 'KB', did you mean kB"),
        (parse_size, "-1 B", "is negative"),
        (parse_size, "5", "has no unit; use one of B"),
        (parse_size, "1.5 B", "a whole number of bytes"),
        (parse_size, "9**9**9 B", "unknown unit"),
        (parse_size, "1e400 B", "has no|not a size|finite"),
        (parse_size, True, "True is not a size"),
        (parse_size, None, "None is not a size"),
        (parse_size, "x" * 1000, r"xxx\.\.\.' is not a size"),
        (parse_size, "1 s", "has the wrong kind of unit"),
        (parse_bandwidth, "10 Gb", "it lacks the /s; use one of bit/s"),
        (parse_bandwidth, "10 Gbps", "did you mean Gbit/s"),
        (parse_bandwidth, "10 mbit/s", "unknown unit 'mbit/s', did you mean Mbit/s"),
        (parse_bandwidth, "5 us", "wrong kind of unit; use one of"),
        (parse_bandwidth, float("nan"), "must be finite"),
        (parse_time, "5 usec", "unknown unit 'usec', did you mean us"),
        (parse_time, "1 KiB", "wrong kind of unit"),
    ],
)
def test_mistakes_are_told_with_what_is_allowed(parse, text: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)


@given(st.text(max_size=80))
def test_no_text_does_worse_than_a_value_error(text: str) -> None:
    for parse in (parse_size, parse_bandwidth, parse_time):
        try:
            assert parse(text) >= 0
        except ValueError as error:
            assert "\n" not in str(error)


@given(st.integers(0, 1 << 40))
def test_sizes_come_back_from_their_spelling_to_four_digits(nbytes: int) -> None:
    spelled = spell_size(nbytes)
    factor = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[spelled.split()[1]]
    assert float(spelled.split()[0]) * factor == pytest.approx(nbytes, rel=6e-4)


@given(st.floats(1e-12, 1e5))
def test_times_come_back_from_their_spelling_to_four_digits(seconds: float) -> None:
    number, unit = spell_time(seconds).split()
    factor = {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12}[unit]
    assert float(number) * factor == pytest.approx(seconds, rel=6e-4)


def test_spellings_of_the_extremes() -> None:
    assert spell_time(float("nan")) == "–"
    assert spell_time(0) == "0 s"
    assert spell_bandwidth(125e6) == "1 Gbit/s"
    assert spell_bandwidth(0.01) == "0.08 bit/s"
