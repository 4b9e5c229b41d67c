"""A gang in a Capacity Block from its event to its end, by the functions as they are, on the simulated account."""

from dataclasses import replace
from typing import Any

from fakes.simulation_stories import Story
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchasePolicy
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.state import JobState
from relaunch_local.simulation import Options
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.machine_scenario import MachineScenario, PlannedReservation
from relaunch_local.simulation.run import SeedRun

NODES = 3
BLOCK = "cr-0b10c0b10c0b10c00"
HOUR = 3_600.0
# EC2 announces the end of a block 40 minutes before it, here an hour after the training began.
STORY = Story(
    "gang",
    recipe=Recipe(2 * HOUR, 300.0),
    definition={
        "nodes": NODES,
        "container": "main",
        "accelerator": AcceleratorRequirement(gpu=GpuRequirement(count=1)),
        "purchase": PurchasePolicy.RESERVED_THEN_SPOT,
    },
)


def run(*planned: PlannedReservation) -> tuple[SeedRun, list[tuple[str, dict[str, Any]]], tuple[str, ...]]:
    """Run the story with what is reserved; return the run, the launches that EC2 was asked for, and violations."""
    machines = MachineScenario(types=("g5.xlarge",), zones=("us-east-1a",), reservations=planned)
    scenario = replace(
        STORY.scenario(),
        machines=machines,
        providers=(),
        capacity={},
        task_definitions={"resnet": {"networkMode": "host"}},
    )
    seed_run = SeedRun(7, Options(without_faults=True, scenario=scenario))
    asked: list[tuple[str, dict[str, Any]]] = []
    simulator = seed_run.account.simulator
    original = simulator.call_ec2

    def note(action: str, parameters: dict[str, Any], *given: Any, **named: Any) -> Any:
        if action in ("CreateFleet", "RunInstances"):
            asked.append((action, parameters))
        return original(action, parameters, *given, **named)

    simulator.call_ec2 = note  # type: ignore[method-assign]
    violations = seed_run.run().violations
    return seed_run, asked, violations


def block(total: int = NODES) -> PlannedReservation:
    return PlannedReservation(BLOCK, "g5.xlarge", "us-east-1a", total, True, -HOUR, 100 * 60.0)  # noqa: FBT003


def test_a_gang_trains_in_a_block_until_its_end_and_goes_on_elsewhere():
    seed_run, asked, violations = run(block())

    assert violations == ()
    (first, wanted), *others = asked
    assert first == "RunInstances"
    assert (wanted["MinCount"], wanted["MaxCount"]) == (NODES, NODES)
    assert wanted["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    assert wanted["CapacityReservationSpecification"]["CapacityReservationTarget"] == {"CapacityReservationId": BLOCK}
    assert {action for action, _ in others} == {"CreateFleet"}
    (job,) = seed_run.account.invariants.jobs.values()
    assert (job.state, job.totals.interruptions, job.totals.failures) == (JobState.SUCCEEDED, 1, 0)
    stops = seed_run.account.invariants.stops[job.job_id]
    assert {stop.kind for stop in stops.values()} == {StopKind.INTERRUPTION, StopKind.SUCCESS}
    assert [each.is_reserved for each in seed_run.account.simulator.instances.bill] == [True] * NODES + [False] * NODES


def test_a_block_of_fewer_instances_launches_none_of_them():
    seed_run, asked, violations = run(block(NODES - 1))

    assert violations == ()
    assert {action for action, _ in asked} == {"CreateFleet"}
    (job,) = seed_run.account.invariants.jobs.values()
    assert job.state is JobState.SUCCEEDED
    assert not any(each.is_reserved for each in seed_run.account.simulator.instances.bill)
