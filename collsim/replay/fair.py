"""The event loop with links that messages of different pairs share, as in `FairLinks`."""

from collections.abc import Sequence
from math import ceil

from collsim.replay.clock import NEVER, put, take
from collsim.replay.filling import fill, find_component
from collsim.replay.steps import begin_all, end_of_crossing, leave, use_cpu_to_send
from collsim.replay.world import N_FLOWS, N_TOUCHED, Flows, World


def run_fair(world: World, flows: Flows, first_steps: Sequence[int]) -> None:
    """Play all events; links are shared anew when all else of an instant has happened."""
    begin_all(world, first_steps)
    now, transfer, stage = take(world.clock)
    while now < NEVER:
        if stage == 0:
            ready = use_cpu_to_send(world, transfer, now)
            if ready > now:
                put(world.clock, transfer, 1, ready)
            else:
                queue_up(world, flows, transfer, now)
        elif stage == 1:
            if flows.queue_head[flows.pair[transfer]] == transfer:
                cross(world, flows, transfer, now)
            else:
                queue_up(world, flows, transfer, now)
        elif stage == world.leave:
            if flows.is_on[transfer] and flows.leaving[transfer] == now:  # else its rate changed
                stop(world, flows, transfer, now)
                has_crossed(world, flows, transfer, now)
        elif stage == world.finish + 1:
            share(world, flows, now)
        else:
            end_of_crossing(world, transfer, stage, now)
        now, transfer, stage = take(world.clock)


def queue_up(world: World, flows: Flows, transfer: int, now: int) -> None:
    """Queue behind the messages of the same pair; cross at once if there are none."""
    pair = flows.pair[transfer]
    if flows.queue_head[pair] < 0:
        flows.queue_head[pair] = transfer
        flows.queue_tail[pair] = transfer
        cross(world, flows, transfer, now)
    else:
        flows.queue_next[flows.queue_tail[pair]] = transfer
        flows.queue_tail[pair] = transfer


def cross(world: World, flows: Flows, transfer: int, now: int) -> None:
    """Begin to flow; an empty message leaves at once."""
    first, end = world.first_hop[transfer], world.first_hop[transfer + 1]
    world.started[transfer] = now
    for hop in range(first, end):
        world.hop_start[hop] = now
    if flows.nbytes[transfer] == 0:
        has_crossed(world, flows, transfer, now)
        return
    flows.is_on[transfer] = True
    flows.remaining[transfer] = flows.nbytes[transfer]
    flows.since[transfer] = now
    for hop in range(first, end):
        link = world.link[hop]
        following = flows.head[link]
        flows.after[hop] = following
        if following >= 0:
            flows.before[following] = hop
        flows.before[hop] = -1
        flows.head[link] = hop
    touch(world, flows, transfer, now)


def stop(world: World, flows: Flows, transfer: int, now: int) -> None:
    """Take a flow off its links."""
    flows.is_on[transfer] = False
    for hop in range(world.first_hop[transfer], world.first_hop[transfer + 1]):
        before, after = flows.before[hop], flows.after[hop]
        if before >= 0:
            flows.after[before] = after
        else:
            flows.head[world.link[hop]] = after
        if after >= 0:
            flows.before[after] = before
    touch(world, flows, transfer, now)


def has_crossed(world: World, flows: Flows, transfer: int, now: int) -> None:
    """The last byte has left: let the next message of the pair go."""
    latency = 0
    for hop in range(world.first_hop[transfer], world.first_hop[transfer + 1]):
        world.hop_end[hop] = now
        latency += world.latency[hop]
    following = flows.queue_next[transfer]
    flows.queue_head[flows.pair[transfer]] = following
    if following >= 0:
        put(world.clock, following, 1, now)
    leave(world, transfer, now)
    put(world.clock, transfer, world.arrive, now + latency)


def touch(world: World, flows: Flows, transfer: int, now: int) -> None:
    """Share the links of a flow anew, after all else of this instant."""
    if flows.count[N_TOUCHED] == 0:
        put(world.clock, len(flows.is_on), world.finish + 1, now)
    for hop in range(world.first_hop[transfer], world.first_hop[transfer + 1]):
        link = world.link[hop]
        if not flows.is_touched[link]:
            flows.is_touched[link] = True
            flows.touched[flows.count[N_TOUCHED]] = link
            flows.count[N_TOUCHED] += 1


def share(world: World, flows: Flows, now: int) -> None:
    """Compute the rates of the flows that a change may have reached, and when they leave.

    Component by component: flows that share no link, not even through others, do not meet.
    """
    for place in range(flows.count[N_TOUCHED]):
        touched = flows.touched[place]
        if flows.is_touched[touched]:
            find_component(world, flows, touched)
            fill(world, flows)
            for found in range(flows.count[N_FLOWS]):
                change_rate(world, flows, flows.found_flow[found], now)
    flows.count[N_TOUCHED] = 0


def change_rate(world: World, flows: Flows, flow: int, now: int) -> None:
    """Let a flow go on at its new rate, and say when it leaves."""
    flows.is_flow_found[flow] = False
    rate = flows.new_rate[flow]
    if rate == flows.rate[flow]:
        return
    flows.remaining[flow] -= flows.rate[flow] * ((now - flows.since[flow]) / 1e12)
    flows.rate[flow] = rate
    flows.since[flow] = now
    end = now + max(0, ceil(flows.remaining[flow] * 1e12 / rate))
    flows.leaving[flow] = end
    put(world.clock, flow, world.leave, end)
