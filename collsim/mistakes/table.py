"""The mistakes as a table: what each does to each of four ranks, and how to do it right.

What is expected was observed with torch's gloo on one machine, many times and under load.
"""

from typing import Final

from collsim.mistakes.arguments import ARGUMENTS
from collsim.mistakes.groups import GROUPS
from collsim.mistakes.order import ORDER

MISTAKES: Final = (*ARGUMENTS, *GROUPS, *ORDER)
