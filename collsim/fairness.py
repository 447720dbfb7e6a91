"""Max-min fair rates: no flow can have more without one having less that has no more already.

Reference: Bertsekas, Gallager: Data Networks, second edition, 1992, section 6.5.2 (progressive
filling).
"""

from collections.abc import Mapping, Sequence


def max_min_rates(
    flows: Mapping[int, Sequence[int]], bandwidth: Mapping[int, float] | Sequence[float]
) -> dict[int, float]:
    """Share links among flows by progressive filling.

    All flows grow alike until a link is full; the flows through it are then fixed, and the others
    grow on. At equal shares the link with the least number is filled first, and the flows of a
    link are fixed in the order of their numbers, so that the arithmetic is reproducible to the bit.

    Args:
        flows: The links (numbers, each at most once) that each flow crosses; at least one.
        bandwidth: Bandwidth (bytes/s) of each link.

    Returns:
        Rate (bytes/s) of each flow.

    >>> max_min_rates({0: [1], 1: [1, 2], 2: [2]}, {1: 1.0, 2: 2.0})
    {0: 0.5, 1: 0.5, 2: 1.5}
    """
    crossing: dict[int, list[int]] = {}
    for flow in sorted(flows):
        for link in flows[flow]:
            crossing.setdefault(link, []).append(flow)
    left = {link: float(bandwidth[link]) for link in sorted(crossing)}
    unfixed = {link: len(crossing[link]) for link in left}
    rates: dict[int, float] = {}
    while len(rates) < len(flows):
        fullest = min(left, key=lambda link: (left[link] / unfixed[link], link))
        share = left[fullest] / unfixed[fullest]
        for flow in crossing[fullest]:
            if flow in rates:
                continue
            rates[flow] = share
            for link in flows[flow]:
                unfixed[link] -= 1
                if unfixed[link]:
                    left[link] = max(0.0, left[link] - share)
                else:
                    del left[link]
    return {flow: rates[flow] for flow in sorted(rates)}


def connected_flows(
    start: Sequence[int], flows: Mapping[int, Sequence[int]], crossing: Mapping[int, set[int]]
) -> list[int]:
    """The flows whose rates may change when something changes on the links `start`.

    Args:
        start: Links on which a flow came or went.
        flows: Links of each active flow.
        crossing: Active flows of each link.
    """
    found: set[int] = set()
    seen = set(start)
    links = list(seen)
    for link in links:  # grows as it is walked
        for flow in crossing.get(link, ()):
            if flow in found:
                continue
            found.add(flow)
            fresh = [other for other in flows[flow] if other not in seen]
            seen.update(fresh)
            links.extend(fresh)
    return sorted(found)
