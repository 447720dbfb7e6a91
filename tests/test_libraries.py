"""What libraries would do: each bound of each rule, and that every choice can be traced."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives import COLLECTIVES
from collsim.cost.exact import exact_ps
from collsim.cost.ideal import Ideal
from collsim.libraries import LIBRARIES, choose
from collsim.libraries.choice import MANY, Call, LibraryChoice, find_band
from collsim.tracing import trace
from collsim.verification import verify

# Open MPI's rules once more, as they are published: "bytes→id" below those bytes, the last one for
# the rest. Sizes are in bytes, K = 1024, M = 1024 K.
BROADCAST = {
    4: "32→3 256→5 512→3 1K→7 32K→1 128K→5 256K→2 512K→1 1M→6 5",
    8: "64→5 128→6 2K→5 8K→6 1M→1 2",
    16: "8→7 64→5 4K→7 16K→5 32K→6 1",
    32: "4K→7 1M→6 8",
    64: "2K→6 7",
    128: "7",
    256: "2→6 16K→5 32K→1 64K→5 7",
    1024: "16K→7 32K→4 7",
    2048: "512K→7 8",
    4096: "256K→7 8",
    MANY: "8K→7 16K→5 256K→7 8",
}
SCATTER = {
    4: "2→3 128K→1 256K→3 1",
    8: "2K→2 4K→1 8K→2 32K→1 1M→3 1",
    16: "16K→2 1M→3 1",
    32: "16K→2 32K→1 3",
    64: "512→2 8K→3 16K→2 3",
    MANY: "512→2 3",
}
ALL_GATHER = {
    2: "3",
    3: "6",
    32: "3",
    64: "1K→3 64K→5 4",
    128: "512→3 64K→5 4",
    256: "512→3 128K→5 512K→4 1M→5 4",
    512: "32→3 128→2 1K→3 128K→5 512K→4 1M→5 4",
    1024: "64→3 256→2 2K→3 5",
    2048: "4→3 8→2 16→3 32→2 256→3 512→2 4K→3 5",
    4096: "32→2 128→3 512→2 4K→3 5",
    MANY: "2→3 8→2 16→3 512→2 4K→3 5",
}
PUBLISHED = {"broadcast": BROADCAST, "scatter": SCATTER, "all_gather": ALL_GATHER}
MEANING: dict[str, dict[int, Any]] = {
    "broadcast": {
        1: "flat_at_once",
        2: "chain",
        3: "chain",
        4: "split_binary",
        5: "binary",
        6: "gloo",
        7: "knomial",
        8: lambda p: None if p & (p - 1) else "scatter_rd_all_gather",
    },
    "scatter": {1: "linear", 2: "binomial", 3: "gloo"},
    "all_gather": {
        2: "bruck",
        3: lambda p: "bruck" if p & (p - 1) else "recursive_doubling",
        4: "ring",
        5: lambda p: "ring" if p % 2 else "neighbour_exchange",
        6: "recursive_doubling",
    },
}


def size(text: str) -> int:
    return int(text.rstrip("KM")) * {"K": 1 << 10, "M": 1 << 20}.get(text[-1], 1)


def bands(text: str) -> list[tuple[int, int, int]]:
    """(first, end, id) of each band of bytes."""
    found, start = [], 1
    for part in text.split():
        end, _, number = part.rpartition("→")
        found.append((start, size(end) if end else 1 << 40, int(number)))
        start = found[-1][1]
    return found


def open_mpi_cases() -> list[Any]:
    """Each band at its first and last byte and rank, for an even, an odd and a power of two."""
    cases = []
    for collective, table in PUBLISHED.items():
        for start, end in pairwise([1, *table]):
            last = min(end, 1 << 14) - 1
            powers = {1 << k for k in range(15) if start <= 1 << k <= last}
            for p in sorted({start, last, min(start + 1, last), *powers}):
                for first, stop, number in bands(table[end]):
                    cases += [(collective, p, n, number) for n in {first, stop - 1}]
    return cases


@pytest.mark.parametrize("collective", PUBLISHED)
def test_open_mpi_keeps_to_its_published_tables_at_every_bound(collective: str) -> None:
    cases = [case[1:] for case in open_mpi_cases() if case[0] == collective]
    assert len(cases) > 100
    for p, n, number in cases:
        found = choose("open_mpi", Call(collective, p, n))
        meaning = MEANING[collective][number]
        assert found.algorithm == (meaning(p) if callable(meaning) else meaning), (p, n)
        assert f"algorithm {number}" in found.rule


def test_the_tables_are_read_as_they_are_meant() -> None:
    assert bands("32→3 1K→7 5") == [(1, 32, 3), (32, 1024, 7), (1024, 1 << 40, 5)]
    assert ("broadcast", 8, 32768, 1) in open_mpi_cases()
    assert ("broadcast", 15, 32767, 6) in open_mpi_cases()


def broadcast(library: str, p: int, n: int, **more: Any) -> LibraryChoice:
    return choose(library, Call("broadcast", p, n, **more))


@pytest.mark.parametrize(
    ("p", "n", "algorithm"),
    [
        (7, 1 << 30, "binomial_halving"),
        (8, 12_287, "binomial_halving"),
        (8, 12_288, "binomial_halving"),
        (8, 12_289, "scatter_rd_all_gather"),
        (8, 524_287, "scatter_rd_all_gather"),
        (8, 524_288, "scatter_rd_all_gather"),
        (8, 524_289, "scatter_ring_all_gather"),
        (9, 12_288, "binomial_halving"),
        (9, 12_289, "scatter_ring_all_gather"),
        (4096, 524_288, "scatter_rd_all_gather"),
        (6144, 12_289, "scatter_ring_all_gather"),
    ],
)
def test_mpich_broadcast_at_every_bound(p: int, n: int, algorithm: str) -> None:
    assert broadcast("mpich", p, n).algorithm == algorithm


def hosts(*sizes: int) -> tuple[tuple[int, ...], ...]:
    ends = [0, *(sum(sizes[: i + 1]) for i in range(len(sizes)))]
    return tuple(tuple(range(a, b)) for a, b in pairwise(ends))


@pytest.mark.parametrize(
    ("sizes", "n", "algorithm", "native"),
    [
        ((1,) * 16, 100, "binomial_halving", "binomial"),
        ((2, 2, 2), 1 << 30, "two_level", "composition alpha: binomial"),
        ((4, 4, 4, 4), 12_287, "two_level", "composition alpha: binomial"),
        ((4, 4, 4, 4), 12_288, "two_level", "composition beta: binomial"),
        ((4, 4, 4, 4), 524_287, "two_level", "composition beta: binomial"),
        ((4, 4, 4, 4), 524_288, "scatter_rd_all_gather", "scatter_recursive_doubling_allgather"),
        ((4, 4, 4, 4), 524_289, "scatter_ring_all_gather", "scatter_ring_allgather"),
        ((4,) * 8, 12_288, "two_level", "composition beta: binomial"),
        ((4,) * 8, 12_289, None, "composition beta: scatter_recursive_doubling_allgather"),
        ((3,) * 10 + (2,), 12_289, None, "composition beta: scatter_ring_allgather"),
        ((4, 4, 4), 12_287, "two_level", "composition alpha: binomial"),
        ((4, 4, 4), 12_288, "binomial_halving", "binomial"),
        ((4, 4, 4), 12_289, "scatter_ring_all_gather", "scatter_ring_allgather"),
        ((16,), 524_287, None, "composition beta"),
        ((16,), 524_288, "scatter_rd_all_gather", "scatter_recursive_doubling_allgather"),
        ((7,), 1 << 30, None, "composition alpha"),
    ],
)
def test_mpich_broadcast_where_ranks_share_hosts(
    sizes: tuple[int, ...], n: int, algorithm: str | None, native: str
) -> None:
    found = broadcast("mpich", sum(sizes), n, groups=hosts(*sizes))

    assert found.algorithm == algorithm
    assert found.native_name.split(",")[0] == native
    if algorithm == "two_level":
        assert found.parameters == {"groups": hosts(*sizes)}
        assert "release_gather" in found.note
    if algorithm is None:
        assert "collsim has no" in found.note


@pytest.mark.parametrize(
    ("p", "n", "algorithm"),
    [
        (8, 65_535, "recursive_doubling"),
        (8, 65_536, "ring"),
        (10, 8_191, "bruck"),
        (10, 8_192, "ring"),
        (10, 8_193, "ring"),
        (1, 524_287, "recursive_doubling"),
    ],
)
def test_mpich_all_gather_at_every_bound(p: int, n: int, algorithm: str) -> None:
    assert choose("mpich", Call("all_gather", p, n)).algorithm == algorithm


@pytest.mark.parametrize("p", [1, 2, 7, 8, 1000])
@pytest.mark.parametrize("n", [1, 1 << 30])
def test_mpich_always_scatters_down_a_binomial_tree(p: int, n: int) -> None:
    assert choose("mpich", Call("scatter", p, n)).algorithm == "binomial"


@pytest.mark.parametrize(("n", "segments"), [(1, 1), (524_288, 1), (524_289, 2), (1 << 30, 2048)])
def test_nccl_broadcasts_in_chunks_along_its_ring(n: int, segments: int) -> None:
    found = broadcast("nccl", 16, n)

    assert (found.algorithm, found.native_name) == ("chain", "ring")
    assert found.segments(n) == segments


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("n", [0, 1, 1 << 30])
def test_gloo_has_one_algorithm_a_collective(collective: str, n: int) -> None:
    assert choose("gloo", Call(collective, 6, n)).algorithm == "gloo"


@st.composite
def calls(draw: st.DrawFn, most_ranks: int) -> Call:
    p = draw(st.integers(1, most_ranks))
    cuts = sorted({0, p, *draw(st.lists(st.integers(0, p), max_size=4))})
    ranks = draw(st.permutations(range(p)))
    groups = tuple(tuple(ranks[a:b]) for a, b in pairwise(cuts))
    return Call(
        draw(st.sampled_from(list(COLLECTIVES))),
        p,
        draw(st.one_of(st.integers(0, 20), st.integers(0, 1 << 21), st.integers(0, 1 << 40))),
        draw(st.sampled_from([(), groups])),
        draw(st.sampled_from([1, 2, 4, 8, 1 << 16])),
    )


@pytest.mark.parametrize("library", LIBRARIES)
@given(data=st.data())
def test_every_choice_can_be_traced_and_does_what_it_should(
    library: str, data: st.DataObject
) -> None:
    call = data.draw(calls(most_ranks=48))
    found = choose(library, call)

    assert (found.library, found.version) == (library, LIBRARIES[library].version)
    assert found.rule
    if found.algorithm is None:
        assert found.note
        return
    assert found.native_name
    definition = COLLECTIVES[call.collective]
    algorithm = definition.algorithms[found.algorithm]
    segments = min(8, found.segments(call.nbytes))
    root = data.draw(st.integers(0, call.n_ranks - 1)) if definition.rooted else 0
    parameters: dict[str, Any] = dict(found.parameters)
    schedule = trace(
        definition, algorithm, call.n_ranks, root=root, segments=segments, **parameters
    )
    verify(schedule)


@pytest.mark.parametrize("library", LIBRARIES)
@given(data=st.data())
def test_a_choice_fits_any_number_of_ranks(library: str, data: st.DataObject) -> None:
    p, n = data.draw(st.integers(1, 1 << 20)), data.draw(st.integers(0, 1 << 40))
    collective = data.draw(st.sampled_from(list(COLLECTIVES)))
    found = choose(library, Call(collective, p, n))

    if found.algorithm is None:
        assert found.note
    else:
        assert COLLECTIVES[collective].algorithms[found.algorithm].ranks.allows(p)


@pytest.mark.parametrize("library", ["open_mpi", "mpich", "nccl"])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_nothing_is_sent_where_there_is_nothing_to_send(library: str, collective: str) -> None:
    found = choose(library, Call(collective, 8, 0))

    assert found.algorithm is None
    assert found.note


def test_open_mpi_falls_back_where_elements_are_too_few() -> None:
    assert broadcast("open_mpi", 16, 1 << 20, element_bytes=1 << 16).algorithm == (
        "scatter_rd_all_gather"
    )
    fewer = broadcast("open_mpi", 16, 15 << 16, element_bytes=1 << 16)
    assert fewer.native_name == "binomial"  # n < 1 MiB
    fewer = broadcast("open_mpi", 16, 15 << 17, element_bytes=1 << 17)
    assert (fewer.algorithm, fewer.native_name) == ("flat_at_once", "basic_linear")
    assert "fewer elements than ranks" in fewer.rule
    assert broadcast("open_mpi", 300, 16_384, element_bytes=16_384).algorithm == "chain"
    assert broadcast("open_mpi", 300, 16_384, element_bytes=8_192).algorithm == "split_binary"


def test_open_mpi_says_where_han_would_take_over() -> None:
    for sizes, is_hans in (((1,) * 8, False), ((8,), False), ((4, 4), True)):
        found = broadcast("open_mpi", 8, 1000, groups=hosts(*sizes))
        assert ("coll/han" in found.note) == is_hans


def test_what_collsim_lacks_is_said() -> None:
    found = broadcast("open_mpi", 24, 1 << 20)
    assert (found.algorithm, found.native_name) == (None, "scatter_allgather")
    assert "needs a power of two ranks" in found.note
    assert "model of the hardware" in choose("nccl", Call("all_gather", 8, 8)).note


def makespan(algorithm: str, p: int, n: int, segments: int = 1) -> float:
    """Seconds at 10 Gbit/s and 10 µs."""
    chunks = COLLECTIVES["broadcast"].algorithms[algorithm].chunks(p, segments)
    found = exact_ps("broadcast", algorithm, p, n, chunks, Ideal(10**7, 1.25e9, "rendezvous"))
    assert found is not None
    return found / 1e12


def test_open_mpi_pipelines_nothing_so_large_messages_fall_off_a_cliff() -> None:
    n = 1 << 20
    chain, linear = broadcast("open_mpi", 7, n), broadcast("open_mpi", 15, n)
    assert (chain.algorithm, chain.segments(n)) == ("chain", 1)
    assert (linear.algorithm, linear.rule) == (
        "flat_at_once",
        "8 ≤ p < 16 and n ≥ 32,768: algorithm 1",
    )
    transfer = n / 1.25e9
    assert makespan("chain", 7, n) == pytest.approx(6 * (transfer + 1e-5))
    assert makespan("flat_at_once", 15, n) == pytest.approx(14 * transfer + 1e-5)
    assert makespan("chain", 15, n, segments=32) < 2 * transfer


def test_mpich_rings_with_very_many_ranks_fall_off_a_cliff() -> None:
    p, n = 512 * 12, 100_000
    for groups in ((), hosts(*[12] * 512)):
        found = broadcast("mpich", p, n, groups=groups)
        assert found.algorithm == "scatter_ring_all_gather"
        assert found.note == "pull request 7332 changes this to binomial, at 16 B a rank"
    assert makespan("binomial_halving", p, n) == pytest.approx(1.16e-3)
    assert makespan("scatter_ring_all_gather", p, n) > 50 * 1.16e-3
    assert broadcast("mpich", 4096, n).algorithm == "scatter_rd_all_gather"


@pytest.mark.parametrize(
    ("p", "n", "note"),
    [
        (12, 12 * 12_288, "binomial, at 12,288 B"),
        (12, 12 * 12_288 + 1, ""),
        (16, 16 * 65_536, "recursive doubling, at 65,536 B"),
        (16, 16 * 65_536 + 1, ""),
    ],
)
def test_what_mpich_changes_is_noted(p: int, n: int, note: str) -> None:
    found = broadcast("mpich", p, n)

    assert found.algorithm == "scatter_ring_all_gather"
    assert note in found.note
    assert bool(note) == bool(found.note)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("broadcast", 0, 1), "n_ranks must be at least 1, got 0"),
        (("broadcast", 1, -1), "nbytes must not be negative, got -1"),
        (("broadcast", 3, 1, ((0, 1),)), "each rank from 0 to 2 once"),
        (("broadcast", 3, 1, (), 0), "element_bytes must be at least 1, got 0"),
    ],
)
def test_impossible_calls_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Call(*arguments)


def test_unknown_libraries_are_refused() -> None:
    with pytest.raises(ValueError, match="no library 'lam'; there are open_mpi, mpich, nccl, gloo"):
        choose("lam", Call("broadcast", 2, 2))
    with pytest.raises(ValueError, match="in none of the bands"):
        find_band(((4, 1),), 4, "p")
