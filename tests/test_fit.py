"""α and β from measured times: what was put in comes out, whatever a few sizes did."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.calibration.fit import fit
from collsim.errors import ScenarioError

SIZES = [1, 256, 1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22]
ALPHAS = st.floats(1e-6, 1e-3)
RATES = st.floats(1e7, 1e10)


def line(alpha: float, bandwidth: float) -> list[tuple[int, float]]:
    return [(nbytes, alpha + nbytes / bandwidth) for nbytes in SIZES]


@given(alpha=ALPHAS, bandwidth=RATES, seed=st.integers(0, 99))
def test_a_line_is_found_again_in_any_order(alpha: float, bandwidth: float, seed: int) -> None:
    times = line(alpha, bandwidth) * 3
    random.Random(seed).shuffle(times)
    found = fit(times)
    alpha_seen = alpha > 0.02 / bandwidth
    assert not alpha_seen or found.alpha == pytest.approx(alpha, rel=0.01)
    if SIZES[-1] / bandwidth > 0.1 * alpha:
        assert found.bandwidth == pytest.approx(bandwidth, rel=0.01)
    assert max(map(abs, found.errors(True))) < 0.01


@given(alpha=st.floats(2e-5, 2e-4), bandwidth=st.floats(1e8, 2e9), seed=st.integers(0, 99))
def test_noise_and_stalls_hardly_move_it_where_least_squares_of_seconds_fail(
    alpha: float, bandwidth: float, seed: int
) -> None:
    noise = random.Random(seed)
    times = [(m, t * noise.uniform(0.97, 1.03)) for m, t in line(alpha, bandwidth) * 25]
    stalled = [(m, t + 4e-3 * (noise.random() < 0.15)) for m, t in times]
    found = fit(stalled)
    assert found.alpha == pytest.approx(alpha, rel=0.1)
    assert found.bandwidth == pytest.approx(bandwidth, rel=0.1)
    sizes, seconds = np.array(stalled).T
    _, plain_alpha = np.polyfit(sizes, seconds, 1)
    assert abs(plain_alpha / alpha - 1) > 0.1


def test_a_size_that_is_far_off_is_named_and_does_not_bend_the_line() -> None:
    times = line(1e-4, 1e8)
    times[4] = (times[4][0], times[4][1] * 3)
    found = fit(times)
    assert found.bandwidth == pytest.approx(1e8, rel=0.02)
    assert found.notes == (
        "64 KiB took 2.266 ms, 3.00 of the line's time: α + m/B does not hold for every size here",
    )


def test_every_third_size_is_held_out_but_never_an_end() -> None:
    found = fit(line(1e-4, 1e8))
    assert [p.nbytes for p in found.points if p.is_held_out] == [SIZES[2], SIZES[5]]
    assert len(found.errors(True)) == 2
    assert len(found.errors(False)) == 6
    assert found.alpha_range[0] <= found.alpha <= found.alpha_range[1]
    assert found.bandwidth_range[0] <= found.bandwidth <= found.bandwidth_range[1]


def test_a_held_out_size_does_not_move_the_line() -> None:
    times = line(1e-4, 1e8)
    moved = [(m, t * (5 if m == SIZES[5] else 1)) for m, t in times]
    assert fit(moved).bandwidth == fit(times).bandwidth
    assert min(fit(moved).errors(True)) == pytest.approx(-0.8, abs=0.01)


def test_what_the_sizes_do_not_tell_is_said() -> None:
    large = fit([(m << 20, 1e-6 + (m << 20) / 1e8) for m in (1, 2, 4)])
    assert "α is hardly seen in these times: measure smaller messages as well" in large.notes
    assert "nothing was held out of the fit, which takes 6 sizes or more" in large.notes
    small = fit([(m, 1e-3 + m / 1e9) for m in (1, 64, 512)])
    assert any(note.startswith("the bandwidth is hardly seen") for note in small.notes)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([(1, 1e-3), (2, 1e-3)], "sizes: at least 3 different ones are needed, got 2"),
        ([(1, 1e-3), (2, 0.0), (4, 1.0)], r"times: must be positive, got 0\.0 s for 2 bytes"),
        ([(1, 1e-3), (2, float("nan")), (4, 1.0)], "times: must be positive, got nan"),
        ([(1, 3.0), (2, 2.0), (4, 1.0)], "times: must grow with the size"),
    ],
)
def test_times_that_allow_no_line_are_refused(times: list, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        fit(times)
