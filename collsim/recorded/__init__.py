"""Real runs that were made earlier, so that measured times can be shown where none can be made.

Each file is what ``collsim check scenarios/NAME.yaml --lab --json collsim/recorded/NAME.json``
wrote, on the machine and day that it names.
"""

from importlib.resources import files
from typing import Any

from collsim.emulation import LabResult
from collsim.errors import ScenarioError
from collsim.scenario import Scenario


def recorded_runs() -> dict[str, LabResult]:
    """Every recorded run, by the name of its scenario's file."""
    found = sorted(
        (place for place in files(__name__).iterdir() if place.name.endswith(".json")),
        key=lambda place: place.name,
    )
    return {
        place.name.removesuffix(".json"): LabResult.model_validate_json(
            place.read_text(encoding="utf-8")
        )
        for place in found
    }


def recorded_run(scenario: Scenario) -> LabResult:
    """The recorded run of a scenario, which must ask the very same.

    Raises:
        ScenarioError: There is none.
    """
    runs = recorded_runs()
    wanted = _asked(scenario.model_dump(mode="json"))
    for run in runs.values():
        if _asked(run.scenario) == wanted:
            return run
    raise ScenarioError(
        "no run of just this scenario is recorded; recorded are scenarios/"
        + ".yaml, scenarios/".join(runs)
        + ".yaml, unchanged"
    )


def _asked(scenario: dict[str, Any]) -> dict[str, Any]:
    """Without the fields that change nothing in real runs, nor in what is predicted for them."""
    return {key: value for key, value in scenario.items() if key not in ("engine", "max_messages")}
