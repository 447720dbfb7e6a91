"""The errors collsim raises.

    CollsimError
      ScenarioError       a scenario asks for something impossible (field, value, what is allowed)
      ScheduleError       the rank programs do not match, or block (which rank, step, peer, chunk)
      ContractError       a schedule ran, but a rank does not hold what the collective promises
      SimulationStalled   the simulated network never finished n of m transfers
      ExecutionError      a real rank died, hung or raised (rank, exit code, last operation)
      ExecutionUnavailable  real gloo runs cannot be had here (no torch, wrong platform)

Misuse of a Python function (a negative rank count, say) is a plain `ValueError`.
"""


class CollsimError(Exception):
    """Base of every error that a user of collsim can be shown as one line."""


class ScenarioError(CollsimError):
    """A scenario asks for something impossible.

    Attributes:
        field: Dotted path of the offending field, for example ``topology.bandwidth``.
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


class ScheduleError(CollsimError):
    """The programs of the ranks do not fit together, or they block."""


class ContractError(CollsimError):
    """A schedule ended, but a rank does not hold what its collective promises."""


class SimulationStalled(CollsimError):
    """The simulation ended before all transfers were done."""


class ExecutionError(CollsimError):
    """A real rank died, hung or raised."""


class ExecutionUnavailable(CollsimError):
    """Real gloo runs cannot be had on this machine; the message says what is missing."""
