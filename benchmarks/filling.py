"""The replay of ``fair`` where every change shares all links anew, to compare with."""

from collections.abc import Callable

from collsim.compiling import compiled
from collsim.network import Network
from collsim.replay import CLOCK, LOOPS, STEPS, replay
from collsim.replay import clock as clocks
from collsim.replay.filling import add_link
from collsim.replay.world import (
    N_FLOWS,
    N_LINKS,
    N_TOUCHED,
    Flows,
    World,
    longest_route,
    new_flows,
    new_world,
)
from collsim.schedule import Schedule


def find_component(world: World, flows: Flows, link: int) -> None:
    """Every link and every flow that is on one, whatever changed."""
    flows.count[N_FLOWS], flows.count[N_LINKS] = 0, 0
    for touched in range(flows.count[N_TOUCHED]):
        flows.is_touched[flows.touched[touched]] = False
    for other in range(len(flows.head)):
        add_link(flows, other)
        hop = flows.head[other]
        while hop >= 0:
            flow = flows.owner[hop]
            if not flows.is_flow_found[flow]:
                flows.is_flow_found[flow] = True
                flows.found_flow[flows.count[N_FLOWS]] = flow
                flows.count[N_FLOWS] += 1
            hop = flows.after[hop]


def recompute_everything(
    schedule: Schedule, network: Network, nbytes: int
) -> dict[str, Callable[[], object]]:
    """Both ways to play a schedule under ``fair``, compiled, once they were seen to agree."""
    loop = tuple(find_component if f.__name__ == "find_component" else f for f in LOOPS["fair"])
    run = compiled((*CLOCK, *STEPS, *loop))

    def play() -> World:
        workload = network.lower(schedule, nbytes)
        longest = longest_route(workload)
        world = new_world(
            network, workload, clocks.new_clock(len(schedule), longest + 6, longest + 1)
        )
        run(world, new_flows(network, workload), schedule.first_steps)
        return world

    assert (play().done == replay(schedule, network, nbytes).done).all()
    return {"all": play, "changed": lambda: replay(schedule, network, nbytes)}
