"""Mistakes in calling real collectives: what they do on gloo, and what collsim says beforehand."""

from collsim.mistakes.lessons import Lesson, find, reproduce, reproduce_all
from collsim.mistakes.mistake import Expected, Mistake
from collsim.mistakes.table import MISTAKES

__all__ = ["MISTAKES", "Expected", "Lesson", "Mistake", "find", "reproduce", "reproduce_all"]
