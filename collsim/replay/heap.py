"""A binary heap of event slots, ordered by (time, key), whose entries can be moved.

Every transfer has two slots: what it does next, and when its last byte leaves. One more slot is for
sharing links anew. Where columns begin is read once a call, which is most of what a call costs.
"""

from collsim.replay.memory import KEY, PLACE, SIZE, SLOT, TIME, Memory


def comes_before(time: int, key: int, other_time: int, other_key: int) -> bool:
    """The rule for ties: at one time, the lower key first."""
    return time < other_time or (time == other_time and key < other_key)


def put(m: Memory, slot: int, time: int, key: int) -> None:
    """Add a slot, or move it if it is there already."""
    place = m[m[PLACE] + slot]
    if place < 0:
        place = m[SIZE]
        m[SIZE] += 1
    m[m[TIME] + slot] = time
    m[m[KEY] + slot] = key
    place = sift_up(m, slot, place)
    sift_down(m, slot, place)


def take(m: Memory) -> int:
    """Remove the earliest slot and return it."""
    first = m[m[SLOT]]
    m[SIZE] -= 1
    m[m[PLACE] + first] = -1
    if m[SIZE] > 0:
        sift_down(m, m[m[SLOT] + m[SIZE]], 0)
    return int(first)


def sift_up(m: Memory, slot: int, place: int) -> int:
    """Move a slot from `place` up to where it belongs; return where that is."""
    slots, places, times, keys = m[SLOT], m[PLACE], m[TIME], m[KEY]
    time, key = m[times + slot], m[keys + slot]
    while place > 0:
        above = (place - 1) >> 1
        other = m[slots + above]
        if not comes_before(time, key, m[times + other], m[keys + other]):
            break
        m[slots + place] = other
        m[places + other] = place
        place = above
    m[slots + place] = slot
    m[places + slot] = place
    return place


def sift_down(m: Memory, slot: int, place: int) -> None:
    """Move a slot from `place` down to where it belongs."""
    slots, places, times, keys, size = m[SLOT], m[PLACE], m[TIME], m[KEY], m[SIZE]
    time, key = m[times + slot], m[keys + slot]
    below = 2 * place + 1
    while below < size:
        other = m[slots + below]
        other_time, other_key = m[times + other], m[keys + other]
        if below + 1 < size:
            right = m[slots + below + 1]
            if comes_before(m[times + right], m[keys + right], other_time, other_key):
                below += 1
                other, other_time, other_key = right, m[times + right], m[keys + right]
        if not comes_before(other_time, other_key, time, key):
            break
        m[slots + place] = other
        m[places + other] = place
        place = below
        below = 2 * place + 1
    m[slots + place] = slot
    m[places + slot] = place
