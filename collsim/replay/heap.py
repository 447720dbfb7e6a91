"""A binary heap of event slots, ordered by (time, key), whose entries can be moved.

Every transfer has two slots: what it does next, and when its last byte leaves. One more slot is for
sharing links anew.
"""

from collsim.replay.memory import KEY, PLACE, SIZE, SLOT, TIME, Memory


def comes_before(m: Memory, one: int, other: int) -> bool:
    """Whether slot `one` is earlier than slot `other`."""
    if m[m[TIME] + one] != m[m[TIME] + other]:
        return bool(m[m[TIME] + one] < m[m[TIME] + other])
    return bool(m[m[KEY] + one] < m[m[KEY] + other])


def put(m: Memory, slot: int, time: int, key: int) -> None:
    """Add a slot, or move it if it is there already."""
    if m[m[PLACE] + slot] < 0:
        m[m[PLACE] + slot] = m[SIZE]
        m[m[SLOT] + m[SIZE]] = slot
        m[SIZE] += 1
    m[m[TIME] + slot] = time
    m[m[KEY] + slot] = key
    sift_down(m, sift_up(m, m[m[PLACE] + slot]))


def take(m: Memory) -> int:
    """Remove the earliest slot and return it."""
    first = m[m[SLOT]]
    m[SIZE] -= 1
    m[m[PLACE] + first] = -1
    if m[SIZE] > 0:
        last = m[m[SLOT] + m[SIZE]]
        m[m[SLOT]] = last
        m[m[PLACE] + last] = 0
        sift_down(m, 0)
    return int(first)


def sift_up(m: Memory, place: int) -> int:
    """Move the slot at `place` up to where it belongs; return where that is."""
    slot = m[m[SLOT] + place]
    while place > 0:
        above = (place - 1) // 2
        if not comes_before(m, slot, m[m[SLOT] + above]):
            break
        m[m[SLOT] + place] = m[m[SLOT] + above]
        m[m[PLACE] + m[m[SLOT] + place]] = place
        place = above
    m[m[SLOT] + place] = slot
    m[m[PLACE] + slot] = place
    return place


def sift_down(m: Memory, place: int) -> None:
    """Move the slot at `place` down to where it belongs."""
    slot = m[m[SLOT] + place]
    while 2 * place + 1 < m[SIZE]:
        below = 2 * place + 1
        if below + 1 < m[SIZE] and comes_before(m, m[m[SLOT] + below + 1], m[m[SLOT] + below]):
            below += 1
        if not comes_before(m, m[m[SLOT] + below], slot):
            break
        m[m[SLOT] + place] = m[m[SLOT] + below]
        m[m[PLACE] + m[m[SLOT] + place]] = place
        place = below
    m[m[SLOT] + place] = slot
    m[m[PLACE] + slot] = place
