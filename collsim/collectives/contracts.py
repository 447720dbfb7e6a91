"""Who holds which chunks before and after a collective: the contracts, as data.

Chunks are those of the whole message: of the one tensor for broadcast; of all ranks' blocks side
by side, in rank order, for scatter and all_gather.
"""


def root_only(rank: int, n_ranks: int, root: int, n_chunks: int) -> range:
    """The root holds everything, the others nothing."""
    return range(n_chunks if rank == root else 0)


def everything(rank: int, n_ranks: int, root: int, n_chunks: int) -> range:
    """Each rank holds everything."""
    return range(n_chunks)


def own_block(rank: int, n_ranks: int, root: int, n_chunks: int) -> range:
    """Each rank holds its own block."""
    per_rank = n_chunks // n_ranks
    return range(rank * per_rank, (rank + 1) * per_rank)


def one_block(n_ranks: int) -> int:
    """The whole message is the collective's one tensor."""
    return 1


def block_per_rank(n_ranks: int) -> int:
    """The whole message has a block for each rank."""
    return n_ranks
