"""Real gloo ranks: every algorithm moves the right bytes, and a rank that fails is named."""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collsim.collectives import COLLECTIVES
from collsim.collectives.contracts import block_per_rank, everything, own_block
from collsim.errors import ContractError, ExecutionError, ExecutionUnavailable, ScheduleError
from collsim.gloo import (
    GlooServer,
    RankGroup,
    execute,
    native,
    native_wire_bytes,
    traffic,
    wire_bytes,
)
from collsim.ordering import with_acks
from collsim.program import Collective, Rank, Recv, Send, Step
from collsim.schedule import Schedule
from collsim.timeline import UNOBSERVED
from collsim.tracing import trace
from collsim.verification import check_contract, initial_buffers, verify

pytestmark = pytest.mark.gloo
BROADCAST = COLLECTIVES["broadcast"]


@pytest.fixture(scope="module")
def server() -> Iterator[GlooServer]:
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(GlooServer())
        except ExecutionUnavailable as error:
            pytest.skip(str(error))
        yield opened


def schedules(p: int) -> Iterator[Schedule]:
    """Every algorithm that is made for p ranks, from the first root and the last."""
    for collective in COLLECTIVES.values():
        for algorithm in collective.algorithms.values():
            if algorithm.ranks.allows(p):
                for root in {0, p - 1} if collective.rooted else {0}:
                    yield trace(collective, algorithm, p, root=root, segments=3)


@pytest.mark.parametrize("p", [2, 3, 4, 5, 8])
def test_every_algorithm_moves_on_gloo_what_verify_moves(server: GlooServer, p: int) -> None:
    with server.group(p) as group:
        for schedule in schedules(p):
            for nbytes in (0, 1, p - 1, 1001, 65536):
                found = group.execute(schedule, nbytes, seed=7)
                assert (found.wire == wire_bytes(schedule, nbytes)).all(), schedule.algorithm
                check_contract(schedule, nbytes, found.buffers, seed=7)
                expected = verify(schedule, nbytes=nbytes, orders=1, seed=7)
                for rank, (real, moved) in enumerate(zip(found.buffers, expected, strict=True)):
                    assert np.array_equal(real, moved), f"{schedule.algorithm}, rank {rank}"


@pytest.mark.parametrize("p", [1, 2, 3, 5, 8])
def test_torchs_own_collectives_agree(server: GlooServer, p: int) -> None:
    with server.group(p) as group:
        for collective in COLLECTIVES.values():
            for root in {0, p - 1} if collective.rooted else {0}:
                schedule = trace(collective, collective.algorithms["gloo"], p, root=root)
                for dtype, nbytes in (("uint8", 0), ("uint8", 1001), ("float32", 4),
                                      ("bfloat16", 4098), ("int64", 65536)):  # fmt: skip
                    found = group.native(schedule, nbytes, dtype=dtype)
                    assert (found.wire == native_wire_bytes(schedule, nbytes)).all()
                    check_contract(schedule, nbytes, found.buffers)
                    assert found.timeline.finish.shape == (p,)
                    assert (found.timeline.finish > 0).any()


def test_the_articles_example(server: GlooServer) -> None:
    """Four ranks, one float: ones on rank 0, zeros elsewhere, all ones afterwards."""
    schedule = trace(BROADCAST, BROADCAST.algorithms["gloo"], 4)
    inputs = tuple(np.array([float(rank == 0)], np.float32).view(np.uint8) for rank in range(4))
    with server.group(4) as group:
        for run in (
            group.execute(schedule, 4, inputs=inputs),
            group.native(schedule, 4, dtype="float32", inputs=inputs),
        ):
            assert [b.view(np.float32).tolist() for b in run.buffers] == [[1.0]] * 4
    assert [b.view(np.float32).tolist() for b in inputs] == [[1.0], [0.0], [0.0], [0.0]]


# What real gloo was seen to send between each pair, headers and control messages included.
SEEN = [
    ("broadcast", 5, 0, [[0, 1000096, 1000096, 0, 1000096], [48, 0, 0, 1000096, 0],
                         [48, 0, 0, 0, 0], [0, 48, 0, 0, 0], [48, 0, 0, 0, 0]]),
    ("scatter", 4, 1, [[0, 48, 0, 0], [1000096, 0, 1000096, 1000096],
                       [0, 48, 0, 0], [0, 48, 0, 0]]),
    ("all_gather", 4, 0, [[0, 3000576, 0, 288], [288, 0, 3000576, 0],
                          [0, 288, 0, 3000576], [3000576, 0, 288, 0]]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "p", "root", "matrix"), SEEN)
def test_bytes_of_a_million_byte_collective_are_those_seen_before(
    server: GlooServer, name: str, p: int, root: int, matrix: list
) -> None:
    collective = COLLECTIVES[name]
    schedule = trace(collective, collective.algorithms["gloo"], p, root=root)
    assert wire_bytes(schedule, 10**6).tolist() == matrix
    with server.group(p) as group:
        assert group.native(schedule, 10**6).wire.tolist() == [matrix]


def test_a_wrong_header_would_be_noticed(
    server: GlooServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = trace(BROADCAST, BROADCAST.algorithms["flat"], 3)
    with server.group(3) as group:
        found = group.execute(schedule, 100)
    monkeypatch.setattr(traffic, "FORWARD", 95)
    assert (found.wire != wire_bytes(schedule, 100)).any()


def test_connections_must_have_two_known_ends() -> None:
    here, there = ("127.0.0.1", 1), ("127.0.0.1", 2)
    assert traffic.matrix_of([{(here, there): 5}, {(there, here): 7}]).tolist() == [[0, 7], [5, 0]]
    third = ("127.0.0.1", 3)  # two ranks use one port of their own, to different peers
    shared: list[traffic.Counts] = [
        {(here, there): 1, (here, third): 2},
        {(there, here): 3},
        {(third, here): 4},
    ]
    assert traffic.matrix_of(shared).tolist() == [[0, 3, 4], [1, 0, 0], [2, 0, 0]]
    one_port: list[traffic.Counts] = [
        {(here, there): 1},
        {(there, here): 2},
        {(here, third): 3},
        {(third, here): 4},
    ]
    assert traffic.matrix_of(one_port)[[0, 1, 2, 3], [1, 0, 3, 2]].tolist() == [2, 1, 4, 3]
    with pytest.raises(ExecutionError, match="rank 0 has a connection to .*which no rank has"):
        traffic.matrix_of([{(here, there): 5}, {}])


def test_the_comparison_notices_a_wrong_byte(server: GlooServer) -> None:
    schedule = trace(BROADCAST, BROADCAST.algorithms["binomial"], 3)
    with server.group(3) as group:
        found = group.execute(schedule, 100)
    found.buffers[2][50] ^= 1
    with pytest.raises(ContractError, match="rank 2 does not hold chunk 0"):
        check_contract(schedule, 100, found.buffers)


def test_acknowledged_schedules_run_too(server: GlooServer) -> None:
    with server.group(5) as group:
        for schedule in schedules(5):
            found = group.execute(with_acks(schedule), 1000)
            assert (found.wire == wire_bytes(with_acks(schedule), 1000)).all()
            check_contract(schedule, 1000, found.buffers)


def test_what_was_observed_and_what_was_not(server: GlooServer) -> None:
    schedule = trace(BROADCAST, BROADCAST.algorithms["chain"], 3, segments=4)
    with server.group(3) as group:
        found = group.execute(schedule, 1000, repetitions=5)
    timeline = found.timeline
    assert timeline.kind == "measured"
    assert len(found.makespans) == 5
    assert found.makespan == sorted(found.makespans)[2]
    assert (timeline.done >= 0).all()
    assert (timeline.left >= 0).all()
    assert (timeline.released == UNOBSERVED).all()
    assert (timeline.step_end >= timeline.step_begin).all()
    follows = schedule.steps.previous >= 0
    before = timeline.step_end[schedule.steps.previous[follows]]
    assert (timeline.step_begin[follows] >= before).all()
    for transfer in schedule:
        assert timeline.done[transfer.id] <= timeline.step_end[transfer.dst_step]


def idle(function: str, arguments: Sequence[dict[str, Any]]) -> list[Any]:
    """Work of ranks that must not be asked for any."""
    raise AssertionError(f"{function} was run")


def test_a_schedule_that_would_hang_gloo_is_refused() -> None:
    def send_first(me: Rank) -> Iterator[Step]:
        yield Send((me.rank + 1) % me.n_ranks, me.rank)
        yield Recv((me.rank - 1) % me.n_ranks, (me.rank - 1) % me.n_ranks)

    gather = Collective("all_gather", own_block, everything, block_per_rank, rooted=False)
    group = RankGroup(idle, {}, 3)
    with pytest.raises(ScheduleError, match="gloo would hang: deadlock under rendezvous: rank 0"):
        group.execute(trace(gather, send_first, 3), 100)


def test_misuse_is_a_value_error(server: GlooServer) -> None:
    schedule = trace(BROADCAST, BROADCAST.algorithms["flat"], 3)
    group = RankGroup(idle, {}, 4)
    with pytest.raises(ValueError, match="the schedule has 3 ranks, the group 4"):
        group.execute(schedule, 1)
    with pytest.raises(ValueError, match="repetitions must be at least 1, got 0"):
        RankGroup(idle, {}, 3).native(schedule, 1, repetitions=0)
    for n_ranks, timeout in ((0, 1.0), (2, 0.0), (2, float("inf")), (2, float("nan"))):
        with (
            pytest.raises(ValueError, match="must be positive"),
            server.group(n_ranks, timeout=timeout),
        ):
            pass


def test_memory_that_does_not_fit_is_refused_before_a_rank_sees_it(server: GlooServer) -> None:
    schedule = trace(BROADCAST, BROADCAST.algorithms["flat"], 2)
    right, short = np.zeros(8, np.uint8), np.zeros(7, np.uint8)
    group = RankGroup(idle, server.itemsizes, 2)
    unfit: list[Any] = [(right, short), (right,), (right, right.view(np.float32)), ()]
    for inputs in unfit:
        with pytest.raises(ValueError, match=r"inputs must be 2 times uint8\[8\], got"):
            group.execute(schedule, 8, inputs=inputs)
    with pytest.raises(ValueError, match="nbytes must be at least 0, got -1"):
        group.execute(schedule, -1)
    with pytest.raises(ValueError, match="nbytes must be a multiple of float32's 4, got 6"):
        group.native(schedule, 6, dtype="float32")
    with pytest.raises(ValueError, match="dtype must be one of .*bfloat16.*, got 'float31'"):
        group.native(schedule, 8, dtype="float31")
    with pytest.raises(ValueError, match="got arguments for 1 ranks of 2"):
        group.run("tests.gloo_faults:hold", [{}])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16", "bool", "bfloat16"])
def test_elements_of_any_type_survive_being_cut(server: GlooServer, dtype: str) -> None:
    """Seven segments of ten elements: their borders lie within elements."""
    size = server.itemsizes[dtype]
    schedule = trace(BROADCAST, BROADCAST.algorithms["chain"], 3, segments=7)
    values = np.random.default_rng(5).integers(0, 2, 10 * size, np.uint8)
    inputs = (values, *(np.full(10 * size, 7, np.uint8) for _ in range(2)))
    with server.group(3) as group:
        ours = group.execute(schedule, 10 * size, inputs=inputs)
        native = group.native(schedule, 10 * size, dtype=dtype, inputs=inputs)
    for found in (ours, native):
        assert all(np.array_equal(buffer, values) for buffer in found.buffers)


def test_one_rank_alone_is_a_group_too(server: GlooServer) -> None:
    with server.group(1) as group:
        for schedule in schedules(1):
            check_contract(schedule, 100, group.execute(schedule, 100).buffers)


def test_two_groups_at_once_from_threads_do_not_disturb_each_other(server: GlooServer) -> None:
    results: list[bool] = []

    def work(p: int) -> None:
        schedule = trace(BROADCAST, BROADCAST.algorithms["binomial"], p)
        with GlooServer() as own, own.group(p) as group:
            for seed in range(20):
                found = group.execute(schedule, 5000, seed=seed)
                check_contract(schedule, 5000, found.buffers, seed=seed)
            results.append(True)

    threads = [threading.Thread(target=work, args=(p,)) for p in (3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True, True]


def test_functions_that_start_their_own_ranks(server: GlooServer) -> None:
    schedule = trace(BROADCAST, BROADCAST.algorithms["gloo"], 2)
    memory = initial_buffers(schedule, 64, seed=3)
    for run in (execute, native):
        assert np.array_equal(run(schedule, 64, seed=3).buffers[1], memory[0])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("raise ImportError('no torch today')", r"gloo \(no torch today\): pip install 'collsim"),
        ("raise OSError('libtorch_cpu.so: no such file')", r"libtorch_cpu.so: no such file"),
        ("import types; distributed = types.SimpleNamespace(is_gloo_available=lambda: False)\n"
         "import sys; sys.modules['torch.distributed'] = distributed\n"
         "__version__ = '0'\ndef set_num_threads(n): pass", "this torch was built without gloo"),
    ],
)  # fmt: skip
def test_without_torch_or_gloo_it_says_what_to_install(
    broken: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text(broken)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ExecutionUnavailable, match=message), GlooServer():
        pass


def test_elsewhere_than_on_linux_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ExecutionUnavailable, match="need Linux, this is darwin"):
        GlooServer()
