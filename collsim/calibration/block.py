"""What was fitted as part of a scenario: a topology and a network that others can include."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from collsim.calibration.files import What
from collsim.calibration.fit import Fit
from collsim.errors import ScenarioError

ASSUMED: Final[dict[What, str]] = {
    "message": "messages from rank to rank",
    "binomial broadcast": "binomial broadcasts: each of ceil(log2 N) rounds sends all bytes",
    "pipelined broadcast": "broadcasts along a pipelined chain: N - 1 latencies, all bytes once",
}


@dataclass(frozen=True)
class Link:
    """What one message costs.

    Attributes:
        alpha: Seconds before its first byte arrives.
        bandwidth: Bytes/s.
    """

    alpha: float
    bandwidth: float


def link_of(fitted: Fit, what: What, n_ranks: int) -> Link:
    """One message's cost out of times that may be those of a broadcast to N ranks.

    Args:
        fitted: The line through the times.
        what: Whose times these are.
        n_ranks: N; only messages do without.

    Raises:
        ScenarioError: N is needed and not known.
    """
    if what == "message":
        return Link(fitted.alpha, fitted.bandwidth)
    if n_ranks < 2:
        raise ScenarioError(
            f"the times are those of {ASSUMED[what]}; say how many ranks took part", "ranks"
        )
    if what == "binomial broadcast":
        rounds = math.ceil(math.log2(n_ranks))
        return Link(fitted.alpha / rounds, fitted.bandwidth * rounds)
    return Link(fitted.alpha / (n_ranks - 1), fitted.bandwidth)


def block(link: Link) -> dict[str, Any]:
    """Scenario fields: a switch whose links carry messages as measured, shared fairly.

    A message crosses two links, so each has half of α. Gloo is a rendezvous transport, and a
    measured α holds its handshake.
    """
    return {
        "topology": {
            "kind": "star",
            "bandwidth": f"{link.bandwidth * 8 / 1e6:.6g} Mbit/s",
            "latency": f"{link.alpha / 2 * 1e6:.6g} us",
        },
        "network": {"sharing": "fair", "protocol": "rendezvous"},
    }


def block_text(fields: Mapping[str, Any], about: Mapping[str, str]) -> str:
    """The block as YAML, with where it comes from.

    Args:
        fields: Of `block`.
        about: What to say of its origin, by name.
    """
    comments = "".join(f"# {name}: {' '.join(text.split())}\n" for name, text in about.items())
    return comments + yaml.safe_dump(dict(fields), sort_keys=False)
