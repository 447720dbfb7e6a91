"""Max-min fair rates of one component of flows, as `collsim.fairness.max_min_rates` gives them."""

from collsim.replay.world import N_FLOWS, N_LINKS, Flows, World


def find_component(world: World, flows: Flows, link: int) -> None:
    """All flows that share links with those of `link`, directly or through others."""
    flows.count[N_FLOWS] = 0
    flows.count[N_LINKS] = 0
    add_link(flows, link)
    reached = 0
    while reached < flows.count[N_LINKS]:
        hop = flows.head[flows.found_link[reached]]
        reached += 1
        while hop >= 0:
            flow = flows.owner[hop]
            if not flows.is_flow_found[flow]:
                flows.is_flow_found[flow] = True
                flows.found_flow[flows.count[N_FLOWS]] = flow
                flows.count[N_FLOWS] += 1
                for other in range(world.first_hop[flow], world.first_hop[flow + 1]):
                    add_link(flows, world.link[other])
            hop = flows.after[hop]


def add_link(flows: Flows, link: int) -> None:
    """Note a link of the component once; it need not be touched again."""
    if not flows.is_link_found[link]:
        flows.is_link_found[link] = True
        flows.is_touched[link] = False
        flows.found_link[flows.count[N_LINKS]] = link
        flows.count[N_LINKS] += 1


def fill(world: World, flows: Flows) -> None:
    """Progressive filling: fix the flows of the fullest link, take them away, and so on."""
    for place in range(flows.count[N_LINKS]):
        link = flows.found_link[place]
        flows.capacity[link] = flows.bandwidth[link]
        flows.unfixed[link] = 0
        hop = flows.head[link]
        while hop >= 0:
            flows.unfixed[link] += 1
            flows.new_rate[flows.owner[hop]] = -1.0
            hop = flows.after[hop]
    while flows.count[N_LINKS] > 0:
        fullest = fullest_link(flows)
        if fullest >= 0:
            fix(world, flows, fullest)


def fullest_link(flows: Flows) -> int:
    """The link with the least bandwidth for each flow; lets go of links whose flows are fixed."""
    fullest, least = -1, 0.0
    place = 0
    while place < flows.count[N_LINKS]:
        link = flows.found_link[place]
        if flows.unfixed[link] == 0:
            flows.is_link_found[link] = False
            flows.count[N_LINKS] -= 1
            flows.found_link[place] = flows.found_link[flows.count[N_LINKS]]
            continue
        place += 1
        part = flows.capacity[link] / flows.unfixed[link]
        if fullest < 0 or part < least or (part == least and link < fullest):
            fullest, least = link, part
    return fullest


def fix(world: World, flows: Flows, fullest: int) -> None:
    """Give the flows of a link their part of it, on all their links."""
    part = flows.capacity[fullest] / flows.unfixed[fullest]
    hop = flows.head[fullest]
    while hop >= 0:
        flow = flows.owner[hop]
        if flows.new_rate[flow] < 0:
            flows.new_rate[flow] = part
            for other in range(world.first_hop[flow], world.first_hop[flow + 1]):
                link = world.link[other]
                flows.unfixed[link] -= 1
                flows.capacity[link] = max(0.0, flows.capacity[link] - part)
        hop = flows.after[hop]
