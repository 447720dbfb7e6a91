"""Mistakes with groups of some of the ranks."""

from typing import Final

from collsim.gloo import misuse_groups
from collsim.mistakes.mistake import ONES, Mistake, holds, raises

NO_GROUPS: Final = "all ranks take part in a program: it has no groups"

NO_MEMBER: Final = raises("Global rank 2 is not part of group")

GROUPS: Final = (
    Mistake(
        "root-not-in-group",
        "src is the root's rank in its group, and no member has that rank of all",
        misuse_groups.root_not_in_group,
        "every member raises at once",
        "src counts in all ranks: give `src=3`, or the rank in the group as `group_src=2`.",
        ((4,) * 4, (4,) * 4, (3,) * 4, (4,) * 4),
        (NO_MEMBER, NO_MEMBER, holds(3, 3, 3, 3), NO_MEMBER),
        blind=NO_GROUPS,
    ),
    Mistake(
        "group-rank-as-root",
        "src is the root's rank in its group, and another member has that rank of all",
        misuse_groups.group_rank_as_root,
        "silent: the other member is the root",
        "src counts in all ranks: give `src=3`, or the rank in the group as `group_src=2`.",
        ((1,) * 4, *((4,) * 4,) * 3),
        (holds(1, 1, 1, 1), *(holds(3, 3, 3, 3),) * 3),
        blind=NO_GROUPS,
    ),
    Mistake(
        "call-from-outside",
        "a rank that is not in the group calls its collective",
        misuse_groups.call_from_outside,
        "it gets a warning, and its tensor stays as it was",
        "Make the group of all ranks that need the result, or call on its members only.",
        (ONES,) * 4,
        (*(holds(*ONES),) * 3, holds(4, 4, 4, 4, says="does not belong to the given group")),
        blind=NO_GROUPS,
    ),
)
