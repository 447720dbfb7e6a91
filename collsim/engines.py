"""Which engine plays a schedule: the readable model in SimPy, or the same model compiled."""

from typing import Final, Literal

from collsim.compiling import has_numba
from collsim.network import Network
from collsim.replay import replay
from collsim.schedule import Schedule
from collsim.timeline import Timeline

Engine = Literal["auto", "simpy", "replay"]

REPLAY_FROM: Final = 20_000
"""Messages from which on loading the compiled replay pays off."""


def play(engine: Engine, schedule: Schedule, network: Network, nbytes: int) -> Timeline:
    """Play a schedule on a network; both engines give the same, bit for bit.

    Args:
        engine: Which; ``auto`` takes the replay for large schedules where numba is installed.
        schedule: What is sent.
        network: Where the ranks are, and how messages travel.
        nbytes: Bytes of the collective's argument.

    Raises:
        ScheduleError: The ranks block each other under the network's protocol.
        ScenarioError: The run is longer than integer picoseconds can count.
        SimulationStalled: Messages were never delivered.
    """
    is_large = len(schedule) >= REPLAY_FROM and has_numba()
    if engine == "replay" or (engine == "auto" and is_large):
        return replay(schedule, network, nbytes)
    from collsim.simulation import simulate  # late: SimPy is not needed by the replay

    return simulate(schedule, network, nbytes)
