"""The event loop with links that messages of different pairs share, as in `FairLinks`."""

from math import ceil

from collsim.replay.heap import put, take
from collsim.replay.memory import (
    AFTER,
    ARRIVE,
    BANDWIDTH,
    BEFORE,
    CAPACITY,
    COUNT,
    FIRST_HOP,
    FOUND_FLOW,
    FOUND_LINK,
    HEAD,
    HOP_END,
    HOP_START,
    IS_FLOW_FOUND,
    IS_LINK_FOUND,
    IS_ON,
    IS_TOUCHED,
    KEY,
    LATENCY,
    LEAVE,
    LINK,
    N_FLOWS,
    N_LINKS,
    N_TOUCHED,
    NBYTES,
    NEW_RATE,
    OWNER,
    PAIR,
    QUEUE_HEAD,
    QUEUE_NEXT,
    QUEUE_TAIL,
    RATE,
    REMAINING,
    SINCE,
    SIZE,
    STAGES,
    STARTED,
    TIME,
    TOUCHED,
    UNFIXED,
    Floats,
    Memory,
)
from collsim.replay.steps import end_of_crossing, leave, schedule_stage, use_cpu_to_send


def run_fair(m: Memory, x: Floats) -> None:
    """Play all events; links are shared anew when all else of an instant has happened."""
    share_slot = 2 * m[COUNT]
    while m[SIZE] > 0:
        slot = take(m)
        now, transfer = m[m[TIME] + slot], slot // 2
        if slot == share_slot:
            share(m, x, now)
            continue
        stage = m[m[KEY] + slot] - transfer * m[STAGES]
        if stage == 0:
            ready = use_cpu_to_send(m, transfer, now)
            if ready > now:
                schedule_stage(m, transfer, ready, 1)
            else:
                queue_up(m, x, transfer, now)
        elif stage == 1:
            if m[m[STARTED] + transfer] == -2:
                cross(m, x, transfer, now)
            else:
                queue_up(m, x, transfer, now)
        elif stage == m[LEAVE]:
            has_crossed(m, x, transfer, now)
        else:
            end_of_crossing(m, transfer, stage, now)


def queue_up(m: Memory, x: Floats, transfer: int, now: int) -> None:
    """Queue behind the messages of the same pair; cross at once if there are none."""
    pair = m[m[PAIR] + transfer]
    if m[m[QUEUE_HEAD] + pair] < 0:
        m[m[QUEUE_HEAD] + pair] = transfer
        m[m[QUEUE_TAIL] + pair] = transfer
        cross(m, x, transfer, now)
    else:
        m[m[STARTED] + transfer] = -2  # it waits in the queue
        m[m[QUEUE_NEXT] + m[m[QUEUE_TAIL] + pair]] = transfer
        m[m[QUEUE_TAIL] + pair] = transfer


def cross(m: Memory, x: Floats, transfer: int, now: int) -> None:
    """Begin to flow; an empty message leaves at once."""
    m[m[STARTED] + transfer] = now
    for hop in range(m[m[FIRST_HOP] + transfer], m[m[FIRST_HOP] + transfer + 1]):
        m[m[HOP_START] + hop] = now
    if x[m[NBYTES] + transfer] == 0:
        has_crossed(m, x, transfer, now)
        return
    m[m[IS_ON] + transfer] = 1
    x[m[REMAINING] + transfer] = x[m[NBYTES] + transfer]
    x[m[RATE] + transfer] = 0.0
    m[m[SINCE] + transfer] = now
    for hop in range(m[m[FIRST_HOP] + transfer], m[m[FIRST_HOP] + transfer + 1]):
        link = m[m[LINK] + hop]
        m[m[BEFORE] + hop] = -1
        m[m[AFTER] + hop] = m[m[HEAD] + link]
        if m[m[HEAD] + link] >= 0:
            m[m[BEFORE] + m[m[HEAD] + link]] = hop
        m[m[HEAD] + link] = hop
    touch(m, x, transfer, now)


def has_crossed(m: Memory, x: Floats, transfer: int, now: int) -> None:
    """The last byte has left: free the links, let the next message of the pair go."""
    if m[m[IS_ON] + transfer]:
        m[m[IS_ON] + transfer] = 0
        for hop in range(m[m[FIRST_HOP] + transfer], m[m[FIRST_HOP] + transfer + 1]):
            if m[m[BEFORE] + hop] >= 0:
                m[m[AFTER] + m[m[BEFORE] + hop]] = m[m[AFTER] + hop]
            else:
                m[m[HEAD] + m[m[LINK] + hop]] = m[m[AFTER] + hop]
            if m[m[AFTER] + hop] >= 0:
                m[m[BEFORE] + m[m[AFTER] + hop]] = m[m[BEFORE] + hop]
        touch(m, x, transfer, now)
    latency = 0
    for hop in range(m[m[FIRST_HOP] + transfer], m[m[FIRST_HOP] + transfer + 1]):
        m[m[HOP_END] + hop] = now
        latency += m[m[LATENCY] + hop]
    pair = m[m[PAIR] + transfer]
    following = m[m[QUEUE_NEXT] + transfer]
    m[m[QUEUE_HEAD] + pair] = following
    if following >= 0:
        schedule_stage(m, following, now, 1)
    leave(m, transfer, now)
    schedule_stage(m, transfer, now + latency, m[ARRIVE])


def touch(m: Memory, x: Floats, transfer: int, now: int) -> None:
    """Share the links of a flow anew, after all else of this instant."""
    if m[N_TOUCHED] == 0:
        put(m, 2 * m[COUNT], now, m[COUNT] * m[STAGES])
    for hop in range(m[m[FIRST_HOP] + transfer], m[m[FIRST_HOP] + transfer + 1]):
        link = m[m[LINK] + hop]
        if not m[m[IS_TOUCHED] + link]:
            m[m[IS_TOUCHED] + link] = 1
            m[m[TOUCHED] + m[N_TOUCHED]] = link
            m[N_TOUCHED] += 1


def share(m: Memory, x: Floats, now: int) -> None:
    """Compute the rates of the flows that a change may have reached, and when they leave."""
    find_component(m, x)
    fill(m, x)
    for i in range(m[N_FLOWS]):
        flow = m[m[FOUND_FLOW] + i]
        m[m[IS_FLOW_FOUND] + flow] = 0
        rate = x[m[NEW_RATE] + flow]
        if rate == x[m[RATE] + flow]:
            continue
        x[m[REMAINING] + flow] -= x[m[RATE] + flow] * ((now - m[m[SINCE] + flow]) / 1e12)
        x[m[RATE] + flow] = rate
        m[m[SINCE] + flow] = now
        wait = ceil(x[m[REMAINING] + flow] * 1e12 / rate)
        schedule_stage(m, flow, now + max(0, wait), m[LEAVE])
    for i in range(m[N_LINKS]):
        m[m[IS_LINK_FOUND] + m[m[FOUND_LINK] + i]] = 0


def find_component(m: Memory, x: Floats) -> None:
    """All flows that share links, directly or through others, with the touched links."""
    m[N_FLOWS] = 0
    m[N_LINKS] = 0
    for i in range(m[N_TOUCHED]):
        add_link(m, m[m[TOUCHED] + i])
        m[m[IS_TOUCHED] + m[m[TOUCHED] + i]] = 0
    m[N_TOUCHED] = 0
    reached = 0
    while reached < m[N_LINKS]:
        hop = m[m[HEAD] + m[m[FOUND_LINK] + reached]]
        reached += 1
        while hop >= 0:
            flow = m[m[OWNER] + hop]
            if not m[m[IS_FLOW_FOUND] + flow]:
                m[m[IS_FLOW_FOUND] + flow] = 1
                m[m[FOUND_FLOW] + m[N_FLOWS]] = flow
                m[N_FLOWS] += 1
                for other in range(m[m[FIRST_HOP] + flow], m[m[FIRST_HOP] + flow + 1]):
                    add_link(m, m[m[LINK] + other])
            hop = m[m[AFTER] + hop]


def add_link(m: Memory, link: int) -> None:
    """Note a link of the component once."""
    if not m[m[IS_LINK_FOUND] + link]:
        m[m[IS_LINK_FOUND] + link] = 1
        m[m[FOUND_LINK] + m[N_LINKS]] = link
        m[N_LINKS] += 1


def fill(m: Memory, x: Floats) -> None:
    """Progressive filling, in the order of `collsim.fairness.max_min_rates`."""
    for i in range(m[N_LINKS]):
        link = m[m[FOUND_LINK] + i]
        x[m[CAPACITY] + link] = x[m[BANDWIDTH] + link]
        m[m[UNFIXED] + link] = 0
        hop = m[m[HEAD] + link]
        while hop >= 0:
            m[m[UNFIXED] + link] += 1
            hop = m[m[AFTER] + hop]
    for i in range(m[N_FLOWS]):
        x[m[NEW_RATE] + m[m[FOUND_FLOW] + i]] = -1.0
    fixed = 0
    while fixed < m[N_FLOWS]:
        fullest, least = -1, 0.0
        for i in range(m[N_LINKS]):
            link = m[m[FOUND_LINK] + i]
            if m[m[UNFIXED] + link] == 0:
                continue
            part = x[m[CAPACITY] + link] / m[m[UNFIXED] + link]
            if fullest < 0 or part < least or (part == least and link < fullest):
                fullest, least = link, part
        hop = m[m[HEAD] + fullest]
        while hop >= 0:
            flow = m[m[OWNER] + hop]
            if x[m[NEW_RATE] + flow] < 0:
                fixed += 1
                x[m[NEW_RATE] + flow] = least
                for other in range(m[m[FIRST_HOP] + flow], m[m[FIRST_HOP] + flow + 1]):
                    link = m[m[LINK] + other]
                    m[m[UNFIXED] + link] -= 1
                    x[m[CAPACITY] + link] = max(0.0, x[m[CAPACITY] + link] - least)
            hop = m[m[AFTER] + hop]
