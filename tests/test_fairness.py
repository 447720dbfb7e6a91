"""The max-min allocator: worked cases, and the definition itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.fairness import connected_flows, max_min_rates


@pytest.mark.parametrize(
    ("flows", "bandwidth", "rates"),
    [
        # Two links of 1, flows over the first, both, the second.
        ({0: [0], 1: [0, 1], 2: [1]}, [1.0, 1.0], {0: 0.5, 1: 0.5, 2: 0.5}),
        ({0: [0], 1: [0, 1], 2: [1]}, [1.0, 2.0], {0: 0.5, 1: 0.5, 2: 1.5}),
        ({7: [0]}, [3.0], {7: 3.0}),
        ({0: [0], 1: [1]}, [3.0, 4.0], {0: 3.0, 1: 4.0}),
        ({}, [1.0], {}),
        # Bertsekas and Gallager's kind of chain: one long flow, one short one on each of 3 links.
        (
            {0: [0, 1, 2], 1: [0], 2: [1], 3: [2]},
            [1.0, 2.0, 4.0],
            {0: 0.5, 1: 0.5, 2: 1.5, 3: 3.5},
        ),
    ],
)
def test_worked_cases(flows: dict, bandwidth: list, rates: dict) -> None:
    assert max_min_rates(flows, bandwidth) == rates


@st.composite
def problems(draw: st.DrawFn) -> tuple[dict[int, list[int]], list[float]]:
    n_links = draw(st.integers(1, 6))
    bandwidth = draw(st.lists(st.floats(0.1, 100), min_size=n_links, max_size=n_links))
    route = st.lists(st.integers(0, n_links - 1), min_size=1, max_size=n_links, unique=True)
    return dict(enumerate(draw(st.lists(route, min_size=1, max_size=12)))), bandwidth


@given(problems())
def test_no_flow_can_grow_without_shrinking_one_that_has_no_more(problem: tuple) -> None:
    """Each flow crosses a full link on which nobody has more: the definition of max-min fair."""
    flows, bandwidth = problem
    rates = max_min_rates(flows, bandwidth)
    load = [sum(rates[f] for f in flows if link in flows[f]) for link in range(len(bandwidth))]
    for link, total in enumerate(load):
        assert total <= bandwidth[link] * (1 + 1e-9)
    for flow, links in flows.items():
        assert rates[flow] > 0
        assert any(
            load[link] >= bandwidth[link] * (1 - 1e-9)
            and all(rates[o] <= rates[flow] * (1 + 1e-9) for o in flows if link in flows[o])
            for link in links
        )


@given(problems())
def test_solving_a_connected_part_alone_gives_the_same_rates(problem: tuple) -> None:
    flows, bandwidth = problem
    crossing: dict[int, set[int]] = {}
    for flow, links in flows.items():
        for link in links:
            crossing.setdefault(link, set()).add(flow)
    whole = max_min_rates(flows, bandwidth)
    members = connected_flows(flows[0], flows, crossing)
    assert 0 in members
    assert max_min_rates({f: flows[f] for f in members}, bandwidth) == {
        f: whole[f] for f in members
    }
    outside = [f for f in flows if f not in members]
    assert not {link for f in outside for link in flows[f]} & {
        link for f in members for link in flows[f]
    }
