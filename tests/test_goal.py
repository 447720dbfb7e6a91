"""GOAL: what an independent reader finds in the exported text is what the programs say."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives import COLLECTIVES
from collsim.export import goal
from collsim.ordering import with_acks
from collsim.program import ALL, Rank, Recv, Send
from collsim.schedule import Schedule
from collsim.tracing import trace
from tests.goal import GoalError, Operation, read_goal

Row = tuple[str, str]
ROWS: list[Row] = [(c.name, name) for c in COLLECTIVES.values() for name in c.algorithms]


@st.composite
def schedules(draw: st.DrawFn, row: Row, most_ranks: int = 13) -> Schedule:
    collective = COLLECTIVES[row[0]]
    algorithm = collective.algorithms[row[1]]
    p = draw(st.integers(1, most_ranks).filter(algorithm.ranks.allows))
    root = draw(st.integers(0, p - 1)) if collective.rooted else 0
    return trace(collective, algorithm, p, root=root, segments=draw(st.integers(1, 6)))


def steps_of_program(
    schedule: Schedule, program: Any, rank: int, channel: int, nbytes: int
) -> Iterator[Counter]:
    """What a rank program itself says: its steps, as multisets of (kind, bytes, peer, tag)."""
    offsets = schedule.offsets(nbytes)
    me = Rank(
        rank, schedule.n_ranks, schedule.root, schedule.n_chunks, channel, schedule.n_channels
    )
    for step in program(me):
        found: Counter = Counter()
        for operation in step if isinstance(step, tuple) else (step,):
            if not isinstance(operation, Send | Recv):
                continue
            chunks = operation.chunks
            if chunks is ALL:
                chunks = range(schedule.n_chunks)
            elif isinstance(chunks, int):
                chunks = range(chunks, chunks + 1)
            size = sum(int(offsets[chunk + 1] - offsets[chunk]) for chunk in chunks)
            is_send = isinstance(operation, Send)
            peer = operation.dst if isinstance(operation, Send) else operation.src
            found["send" if is_send else "recv", size, peer, channel] += 1
        yield found


def steps_of_text(operations: list[Operation], tag: int) -> Iterator[Counter]:
    """The operations of one tag in layers, each of which requires exactly all of the one before.

    Raises:
        AssertionError: They do not stand in such layers.
    """
    own = {place: set(op.requires) for place, op in enumerate(operations) if op.tag == tag}
    layer: set[int] = set()
    while own:
        following = {place for place, required in own.items() if required == layer}
        assert following, f"not in layers: {own}"
        yield Counter(
            (op.kind, op.amount, op.peer, op.tag) for op in map(operations.__getitem__, following)
        )
        for place in following:
            del own[place]
        layer = following


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
@given(data=st.data())
def test_the_text_says_what_the_rank_programs_say(row: Row, data: st.DataObject) -> None:
    schedule = data.draw(schedules(row))
    nbytes = data.draw(st.integers(0, 3000))
    program = COLLECTIVES[row[0]].algorithms[row[1]].program

    ranks = read_goal(goal(schedule, nbytes))

    assert len(ranks) == schedule.n_ranks
    for rank, operations in enumerate(ranks):
        assert {op.tag for op in operations} <= set(range(schedule.n_channels))
        assert not any(op.irequires or op.cpu or op.nic for op in operations)
        for channel in range(schedule.n_channels):
            expected = list(steps_of_program(schedule, program, rank, channel, nbytes))
            assert list(steps_of_text(operations, channel)) == expected


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
@given(data=st.data())
def test_counts_bytes_and_tags_match(row: Row, data: st.DataObject) -> None:
    schedule = data.draw(schedules(row))
    if data.draw(st.booleans()) and row[1] in ("flat", "binomial", "ring", "two_trees", "gloo"):
        schedule = with_acks(schedule)
    nbytes = data.draw(st.integers(0, 3000))

    ranks = read_goal(goal(schedule, nbytes))

    sides: dict[str, dict[tuple[int, int, int], list[int]]] = {"send": {}, "recv": {}}
    for rank, operations in enumerate(ranks):
        for op in operations:
            pair = (rank, op.peer) if op.kind == "send" else (op.peer, rank)
            sides[op.kind].setdefault((*pair, op.tag), []).append(op.amount)
    assert sides["send"] == sides["recv"]  # in order, as messages of one source and tag match
    assert sum(map(len, sides["send"].values())) == len(schedule)
    matrix = schedule.bytes_matrix(nbytes)
    for src in range(schedule.n_ranks):
        for dst in range(schedule.n_ranks):
            tags = range(schedule.n_channels)
            assert matrix[src, dst] == sum(sum(sides["send"].get((src, dst, t), [])) for t in tags)


SMALL = """num_ranks 2
rank 0 {
l1: send 8b to 1 tag 3
l2: recv 8b from 1  // the answer
l2 requires l1
calc 5 cpu 1
}
/* a
   remark */
rank 1 {
a: recv 8b from 0 tag 3
b: send 8 b to 0 cpu 0 nic 0
b irequires a
}
"""


def test_the_reader_reads_what_the_format_allows() -> None:
    assert read_goal(SMALL) == [
        [
            Operation("send", 8, 1, 3),
            Operation("recv", 8, 1, 0, requires=[0]),
            Operation("calc", 5, cpu=1),
        ],
        [Operation("recv", 8, 0, 3), Operation("send", 8, 0, 0, irequires=[0])],
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("num_ranks 2\n", "", "line 1: not the next of None ranks"),
        ("num_ranks 2", "num_ranks 3", "num_ranks says 3, there are 2"),
        ("num_ranks 2", "num_ranks 1", "line 3: expected an operation"),
        ("rank 1", "rank 2", "line 10: not the next of 2 ranks"),
        ("l2 requires l1", "l2 requires l3", "line 5: there is no l3 above"),
        ("l2:", "l1:", "line 4: l1 is there twice"),
        ("to 1", "to 2", "line 3: expected an operation, got 'send 8b to 2 tag 3'"),
        ("to 1", "from 1", "line 3: expected an operation"),
        ("8b to 1", "8 to 1", "line 3: expected an operation"),
        ("l2 requires", "l2 needs", "line 5: expected an operation"),
        ("cpu 1\n}", "cpu 1", "line 9: expected an operation"),
        ("a\n}\n", "a\n", "line 10: the rank has no closing bracket"),
        ("a\n}\n", "a\n}\n}\n", "line 15: expected a rank, got '}'"),
    ],
)
def test_the_reader_refuses_what_is_not_goal(old: str, new: str, message: str) -> None:
    with pytest.raises(GoalError, match=re.escape(message)):
        read_goal(SMALL.replace(old, new))


def forget_dependencies(text: str) -> str:
    return re.sub(r"\w+ requires \w+\n", "", text)


def wait_for_one_only(text: str) -> str:
    return re.sub(r"(\w+ requires \w+\n)(?:\w+ requires \w+\n)+", r"\1", text)


def one_byte_less(text: str) -> str:
    return re.sub(r"send 100b", "send 99b", text)


def other_tag(text: str) -> str:
    return text.replace("tag 0", "tag 1")


def one_after_the_other(text: str) -> str:
    return re.sub(r"(l1: .*\nl2: .*\n)", r"\1l2 requires l1\n", text)


MISTAKES = [forget_dependencies, wait_for_one_only, one_byte_less, other_tag, one_after_the_other]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_comparison_with_programs_sees_a_mistake(mistake: Callable[[str], str]) -> None:
    row = ("all_gather", "ring")
    program = COLLECTIVES[row[0]].algorithms[row[1]].program
    schedule = trace(COLLECTIVES[row[0]], program, 4)
    text = goal(schedule, 100)
    broken = mistake(text)
    assert broken != text

    def equal(text: str) -> bool:
        expected = list(steps_of_program(schedule, program, 1, 0, 100))
        return list(steps_of_text(read_goal(text)[1], 0)) == expected

    assert equal(text)
    try:
        assert not equal(broken)
    except AssertionError as error:
        assert "not in layers" in str(error)
