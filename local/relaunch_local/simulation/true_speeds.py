"""How fast a training is on the instance where its container starts."""

from dataclasses import dataclass

from relaunch_local.ecs import EcsSimulator, ProcessSpec
from relaunch_local.simulation.scenario import Scenario


@dataclass(frozen=True, slots=True)
class TrueSpeeds:
    """The speeds of a scenario, on the instances of a simulator."""

    _scenario: Scenario
    _simulator: EcsSimulator

    def of(self, spec: ProcessSpec) -> float:
        """Return how many seconds of its work a training does in a second."""
        instance_type = self._simulator.instances.by_id[spec.instance_id].instance_type
        return self._scenario.speed(spec.environment["RECIPE"], instance_type).true
