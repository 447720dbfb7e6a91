"""What builders refuse."""

import math

import pytest

from collsim.topology import TOPOLOGIES

COUNTS = [
    ("star", "hosts"),
    ("line", "hosts"),
    ("ring", "hosts"),
    ("full_mesh", "hosts"),
    ("leaf_spine", "leaves"),
    ("leaf_spine", "spines"),
    ("leaf_spine", "hosts_per_leaf"),
    ("fat_tree", "k"),
    ("dragonfly", "p"),
    ("dragonfly", "a"),
    ("dragonfly", "h"),
    ("multi_gpu", "nodes"),
    ("multi_gpu", "gpus_per_node"),
    ("two_sites", "hosts_per_site"),
    ("ring", "directions"),
    ("hypercube", "dimension"),
]


@pytest.mark.parametrize(("kind", "name"), COUNTS)
@pytest.mark.parametrize("value", [-1, 2.5, "4", True, None, 10**30])
def test_bad_counts_are_named_with_their_value_and_what_is_allowed(
    kind: str, name: str, value: object
) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be a whole number from .* to ") as caught:
        TOPOLOGIES[kind](**{name: value})

    assert str(caught.value).endswith(f"got {value!r}")


@pytest.mark.parametrize("kind", TOPOLOGIES)
@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, "fast", True, 10**400])
def test_bad_bandwidths_are_named(kind: str, value: object) -> None:
    name = "nic_bandwidth" if kind == "multi_gpu" else "bandwidth"

    with pytest.raises(ValueError, match=f"^{name} must be a positive number of bytes/s, got"):
        TOPOLOGIES[kind](**{name: value})


@pytest.mark.parametrize("kind", TOPOLOGIES)
@pytest.mark.parametrize("value", [-1e-9, math.inf, math.nan, "5 us", False, 1e7])
def test_bad_latencies_are_named(kind: str, value: object) -> None:
    name = "nic_latency" if kind == "multi_gpu" else "latency"

    with pytest.raises(ValueError, match=f"^{name} must be a number of seconds from 0 to"):
        TOPOLOGIES[kind](**{name: value})


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("fat_tree", {"k": 5}, "k must be even, got 5"),
        ("mesh", {"dims": 4}, "dims must be a list of 1 to 16 whole numbers, got 4"),
        ("torus", {"dims": []}, "dims must be a list of 1 to 16"),
        ("torus", {"dims": "44"}, "dims must be a list of 1 to 16"),
        ("mesh", {"dims": [4, 0]}, r"dims\[1\] must be a whole number from 1 to 100,000, got 0"),
        ("ring", {"directions": 3}, "directions must be a whole number from 1 to 2, got 3"),
        (
            "leaf_spine",
            {"uplink_bandwidth": 1e9, "oversubscription": 2},
            "give uplink_bandwidth or oversubscription, not both",
        ),
        ("leaf_spine", {"oversubscription": 0}, "oversubscription must be above 0"),
        ("leaf_spine", {"oversubscription": "3:1"}, "oversubscription must be above 0"),
        ("leaf_spine", {"uplink_bandwidth": -1}, "uplink_bandwidth must be a positive number"),
        ("multi_gpu", {"spine_bandwidth": 0}, "spine_bandwidth must be a positive number"),
        ("dragonfly", {"global_latency": -1}, "global_latency must be a number of seconds"),
        ("two_sites", {"thin_bandwidth": 0}, "thin_bandwidth must be a positive number"),
    ],
)
def test_bad_values_are_named(kind: str, parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TOPOLOGIES[kind](**parameters)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("star", {"hosts": 100_000}),
        ("full_mesh", {"hosts": 50_000}),
        ("mesh", {"dims": [1000, 1000]}),
        ("torus", {"dims": [99_999] * 16}),
        ("fat_tree", {"k": 99_998}),
        ("leaf_spine", {"leaves": 400, "hosts_per_leaf": 400}),
        ("leaf_spine", {"leaves": 20_000, "spines": 20_000, "hosts_per_leaf": 1}),
        ("dragonfly", {"p": 16, "a": 32, "h": 16}),
        ("multi_gpu", {"nodes": 20_000}),
        ("two_sites", {"hosts_per_site": 50_000}),
    ],
)
def test_absurd_counts_are_refused_before_they_are_built(
    kind: str, parameters: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match=r"would have [\d,]+ .*; at most [\d,]+ are allowed") as e:
        TOPOLOGIES[kind](**parameters)

    assert next(iter(parameters)) in str(e.value)
