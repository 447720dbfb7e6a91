"""Real gloo ranks that fail: the one to blame is named, in time, and nothing is left behind."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from collsim.collectives import COLLECTIVES
from collsim.errors import ExecutionError, ExecutionUnavailable
from collsim.gloo import GlooServer, RankGroup
from collsim.gloo.plans import plan_ranks
from collsim.tracing import trace
from collsim.verification import initial_buffers

pytestmark = pytest.mark.gloo
BROADCAST = COLLECTIVES["broadcast"]
HOLD, DIES = "tests.gloo_faults:hold", "tests.gloo_faults:dies"
SLACK = 3.0  # seconds beyond a timeout, on a busy machine


@pytest.fixture(scope="module")
def server() -> Iterator[GlooServer]:
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(GlooServer())
        except ExecutionUnavailable as error:
            pytest.skip(str(error))
        yield opened


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_the_end_of(pids: list[int]) -> None:
    deadline = time.monotonic() + 10
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline, "ranks are still there"
        time.sleep(0.05)


def processes(group: RankGroup) -> list[int]:
    return group.run(HOLD, [{}] * group.n_ranks)


def assert_works(server: GlooServer) -> None:
    with server.group(2) as group:
        assert len(processes(group)) == 2


@pytest.mark.parametrize(
    ("how", "message", "timeout"),
    [
        ("killed", "died: signal SIGKILL", 20.0),
        ("aborts", "died: signal SIGABRT (what(): 8 vs 4)", 20.0),
        ("exits", "died: exit code 3", 20.0),
        ("raises", "raised ZeroDivisionError: by hand", 20.0),
        ("raises without a word", "raised AssertionError", 20.0),
        ("stopped", "was stopped (SIGSTOP) and did not answer within 2 s", 2.0),
        ("sleeps", "did not answer within 2 s", 2.0),
    ],
)
def test_a_rank_that_fails_is_named_in_time_and_leaves_no_process(
    server: GlooServer, how: str, message: str, timeout: float
) -> None:
    with server.group(4, timeout=timeout) as group:
        pids = processes(group)
        begun = time.monotonic()
        with pytest.raises(ExecutionError) as caught:
            group.run(DIES, [{"rank": 2, "how": how}] * 4)
        assert str(caught.value) == f"rank 2 {message} (last seen: on the brink)"
        assert time.monotonic() - begun < min(timeout, 5.0) + SLACK
        assert not [pid for pid in pids if is_alive(pid)]
    assert_works(server)


def test_an_error_brings_the_ranks_own_traceback(server: GlooServer) -> None:
    with server.group(2) as group, pytest.raises(ExecutionError) as caught:
        group.run(DIES, [{"rank": 1, "how": "raises"}] * 2)
    assert 'raise ZeroDivisionError("by hand")' in caught.value.__notes__[0]


def test_a_rank_that_dies_in_a_schedule_is_named_with_its_step(server: GlooServer) -> None:
    schedule = trace(BROADCAST, BROADCAST.algorithms["chain"], 4, segments=8)
    (step,) = (s for s in range(len(schedule.steps)) if schedule.steps.rank[s] == 2
               and schedule.steps.position[s] == 5)  # fmt: skip
    plans, memory = plan_ranks(schedule, 1 << 20), initial_buffers(schedule, 1 << 20)
    arguments = [
        {"rank": 2, "step": step, "channels": plan, "memory": own, "repetitions": 1}
        for plan, own in zip(plans, memory, strict=True)
    ]
    label = schedule.steps.label[step] or schedule.steps.where(step)
    with server.group(4) as group, pytest.raises(ExecutionError) as caught:
        group.run("tests.gloo_faults:dies_in_step", arguments)
    assert str(caught.value) == f"rank 2 died: signal SIGKILL (last seen: step 5: {label})"


def test_repetitions_that_end_differently_are_an_error(server: GlooServer) -> None:
    schedule = trace(BROADCAST, BROADCAST.algorithms["flat"], 2)
    arguments = [
        {"channels": plan, "memory": own, "repetitions": 3}
        for plan, own in zip(plan_ranks(schedule, 9), initial_buffers(schedule, 9), strict=True)
    ]
    told = "rank 1 raised RuntimeError: repetition 1 ended with other bytes than the first"
    with server.group(2) as group, pytest.raises(ExecutionError, match=told):
        group.run("tests.gloo_faults:changes_its_mind", arguments)


@pytest.mark.parametrize(
    ("sign", "nbytes", "message"),
    [
        (signal.SIGKILL, 0, "rank 2 died: signal SIGKILL"),
        (signal.SIGKILL, 1 << 20, "rank 2 died: signal SIGKILL"),
        (signal.SIGSTOP, 0, "rank 2 was stopped"),
        (signal.SIGSTOP, 1 << 20, "rank 2 was stopped"),  # more than a pipe holds
    ],
)
def test_a_rank_that_fails_between_two_pieces_of_work_is_named(
    server: GlooServer, sign: signal.Signals, nbytes: int, message: str
) -> None:
    with server.group(4, timeout=1.0) as group:
        pids = processes(group)
        os.kill(pids[2], sign)
        begun = time.monotonic()
        with pytest.raises(ExecutionError, match=message):
            group.run(HOLD, [{"load": bytes(nbytes)}] * 4)
        assert time.monotonic() - begun < 1.0 + SLACK
        assert not [pid for pid in pids if is_alive(pid)]
    assert_works(server)


def test_a_rank_that_is_stopped_in_the_middle_of_its_answer_is_named(server: GlooServer) -> None:
    with server.group(3, timeout=1.0) as group:
        pids = processes(group)
        with pytest.raises(ExecutionError, match="rank 1 was stopped"):
            group.run("tests.gloo_faults:stops_in_its_answer", [{"rank": 1}] * 3)
        assert not [pid for pid in pids if is_alive(pid)]


def test_a_group_is_not_used_after_a_failure_nor_after_its_end(server: GlooServer) -> None:
    with server.group(2) as group:
        with pytest.raises(ExecutionError, match="rank 1 raised"):
            group.run(DIES, [{"rank": 1, "how": "raises"}] * 2)
        with pytest.raises(ExecutionError, match=r"has failed, .*; open a new group"):
            group.run(HOLD, [{}] * 2)
    with pytest.raises(ExecutionError, match="has ended; open a new group"):
        group.run(HOLD, [{}] * 2)


def test_ranks_end_when_the_callers_own_code_raises(server: GlooServer) -> None:
    pids = []
    with suppress(KeyError), server.group(3) as group:
        pids = processes(group)
        raise KeyError
    assert len(pids) == 3
    assert not [pid for pid in pids if is_alive(pid)]
    assert_works(server)


def test_a_server_has_one_group_at_a_time_and_keeps_it(server: GlooServer) -> None:
    with server.group(2) as group:
        with pytest.raises(ValueError, match="this server has a group"), server.group(2):
            pass
        assert len(processes(group)) == 2


def test_a_request_that_is_interrupted_ends_everything(server: GlooServer) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        with GlooServer() as own:
            with own.group(2) as group:
                pids = processes(group)
                timer.start()
                with pytest.raises(KeyboardInterrupt):
                    group.run(DIES, [{"rank": 1, "how": "sleeps"}] * 2)
            wait_for_the_end_of(pids)
            with pytest.raises(ExecutionError, match="open a new GlooServer"), own.group(2):
                pass
    finally:
        timer.cancel()
        signal.signal(signal.SIGUSR1, before)


def test_too_few_open_files_are_told_and_do_not_end_the_server(server: GlooServer) -> None:
    limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (40, limits[1]))
    told = "60 ranks cannot be started: .*Too many open files"
    try:
        with pytest.raises(ExecutionError, match=told), server.group(60):
            pass
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
    assert_works(server)


def test_the_process_that_forks_has_one_thread(server: GlooServer) -> None:
    assert_works(server)
    assert len(list(Path(f"/proc/{server.pid}/task").iterdir())) == 1


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSTOP])
def test_a_server_that_fails_says_so_and_takes_its_ranks_along(
    server: GlooServer, sign: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["collsim.gloo.execute"], "PATIENCE", 0.5)
    told = "ended: signal SIGKILL" if sign == signal.SIGKILL else "did not answer within 1.5 s"
    with GlooServer() as own:
        with own.group(2, timeout=1.0) as group:
            pids = processes(group)
            os.kill(own.pid, sign)
            with pytest.raises(ExecutionError, match=told):
                group.run(HOLD, [{}] * 2)
        wait_for_the_end_of([*pids, own.pid])
        with pytest.raises(ExecutionError, match="open a new GlooServer"), own.group(2):
            pass


CALLER = """
import os, signal, sys, time
from collsim.gloo import GlooServer
HOLD, DIES = "tests.gloo_faults:hold", "tests.gloo_faults:dies"
with GlooServer() as server, server.group(3) as group:
    pids = group.run(HOLD, [{}] * 3)
    print(*pids, server.pid, flush=True)
    match sys.argv[1]:
        case "idle":
            time.sleep(60)
        case "at work":
            group.run(DIES, [{"rank": 1, "how": "sleeps"}] * 3)
        case "at work with a stopped rank":
            os.kill(pids[1], signal.SIGSTOP)
            group.run(HOLD, [{"load": bytes(1 << 20)}] * 3)
"""


@pytest.mark.parametrize("doing", ["idle", "at work", "at work with a stopped rank"])
def test_nothing_outlives_a_caller_that_is_killed(
    server: GlooServer, doing: str, tmp_path: Path
) -> None:
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, doing],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert caller.stdout is not None
    with caller.stdout:
        pids = [int(pid) for pid in caller.stdout.readline().split()]
    assert len(pids) == 4
    time.sleep(0.3)
    assert list(tmp_path.iterdir()) == []  # not even now: what they need has no name
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    wait_for_the_end_of(pids)
    assert list(tmp_path.iterdir()) == []


def test_ranks_find_the_modules_that_their_caller_finds(
    server: GlooServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_work.py").write_text("def double(me): return 2 * me.rank")
    monkeypatch.syspath_prepend(tmp_path)
    with GlooServer() as own, own.group(3) as group:
        assert group.run("my_work:double", [{}] * 3) == [0, 2, 4]
