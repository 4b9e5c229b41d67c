"""The example job definition, task definition and image belong together and are what AWS accepts."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from botocore.validate import ParamValidator

from functional.examples.attempts import EXAMPLES
from relaunch.adapters.aws.ecs.revisions import read_revision
from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.offerings.bundled import bundled_snapshot, load_catalogue
from relaunch.adapters.offerings.regional import RegionalOfferings
from relaunch.core.revisions.revision import TaskDefinitionGrants, revision_problem
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.usecases.load_offerings import AvailableOfferings
from relaunch.usecases.plan_jobs import plan_on, plan_on_kubernetes

AT = datetime(2026, 1, 1, tzinfo=UTC)
REGISTERED = {"taskDefinitionArn": "arn:aws:ecs:us-east-1:111122223333:task-definition/example:1", "revision": 1}
TASK_DEFINITIONS = sorted(EXAMPLES.rglob("task-definition*.json"))


@pytest.fixture
def task_definition() -> dict[str, Any]:
    return json.loads((EXAMPLES / "task-definition.json").read_text())  # type: ignore[no-any-return]


@pytest.fixture
def definitions() -> dict[str, dict[str, Any]]:
    # The base loader makes only strings; the safe one would read the key `on` as true, as YAML 1.1 has it.
    text = (EXAMPLES / "relaunch.yaml").read_text()
    return yaml.load(text, Loader=yaml.BaseLoader)["jobs"]  # type: ignore[no-any-return]  # noqa: S506 - see above


@pytest.mark.parametrize("file", TASK_DEFINITIONS, ids=lambda file: str(file.relative_to(EXAMPLES)))
def test_data_loaders_and_nccl_have_more_shared_memory_than_docker_gives(file: Path) -> None:
    (container,) = json.loads(file.read_text())["containerDefinitions"]

    assert container["memory"] / 4 <= container["linuxParameters"]["sharedMemorySize"] < container["memory"]


@pytest.mark.parametrize(
    "file", sorted(EXAMPLES.rglob("relaunch*.yaml")), ids=lambda file: str(file.relative_to(EXAMPLES))
)
def test_every_example_would_run_with_its_task_definition(file: Path) -> None:
    written = [json.loads(each.read_text()) for each in TASK_DEFINITIONS]
    # Ranks meet on the network of their machines, which a stack allows by HostAccess=on.
    is_on_host = {each["family"]: each["networkMode"] == "host" for each in written}
    revisions = {
        each["family"]: read_revision({**each, **REGISTERED}, has_host_access=is_on_host[each["family"]])
        for each in written
    }
    offerings = RegionalOfferings(bundled_snapshot("us-east-1")).offerings(AT)
    available = AvailableOfferings(AT, offerings, {}, SelectionLimits())
    own_machines = replace(available, offerings=tuple(replace(each, is_own_machine=True) for each in offerings))

    for definition in parse_definitions(file.read_text(), str(file), load_catalogue()):
        if definition.target.capabilities.runs_pods:
            assert plan_on_kubernetes(definition, AT, None).problem == ""
            continue
        revision = revisions[definition.task_definition]
        assert is_on_host[definition.task_definition] is (definition.nodes > 1)
        plan = plan_on(own_machines if definition.nodes > 1 else available, definition, revision)
        assert plan.problem == revision_problem(revision, TaskDefinitionGrants()) == ""
        assert plan.selection is not None
        assert plan.selection.chosen is not None
        assert not any("offered nowhere" in each for each in plan.notices)


@pytest.mark.parametrize("file", TASK_DEFINITIONS, ids=lambda file: str(file.relative_to(EXAMPLES)))
def test_the_task_definition_is_a_valid_request_to_register_it(file: Path) -> None:
    task_definition = json.loads(file.read_text())
    service = boto3.client("ecs", region_name="eu-central-1").meta.service_model
    shape = service.operation_model("RegisterTaskDefinition").input_shape
    assert shape is not None

    problems = ParamValidator().validate(task_definition, shape)

    assert problems.generate_report() == ""


def test_the_job_definition_names_the_family_and_container_of_the_task_definition(
    task_definition: dict[str, Any], definitions: dict[str, dict[str, Any]]
) -> None:
    (definition,) = definitions.values()
    (container,) = task_definition["containerDefinitions"]

    assert definition["task_definition"] == task_definition["family"]
    assert definition["container"] == container["name"]
    assert container["resourceRequirements"] == [
        {"type": "GPU", "value": str(definition["accelerator"]["gpu"]["count"])}
    ]


def test_the_container_has_time_to_save_within_the_two_minutes_of_a_spot_warning(
    task_definition: dict[str, Any],
) -> None:
    (container,) = task_definition["containerDefinitions"]

    assert container["stopTimeout"] == 90


def test_the_container_runs_the_training_where_the_image_has_it(task_definition: dict[str, Any]) -> None:
    (container,) = task_definition["containerDefinitions"]
    image = (EXAMPLES / "train" / "Dockerfile").read_text().splitlines()

    package = container["command"][-1]
    assert container["command"] == ["python", "-m", "train"]
    assert f"WORKDIR {container['workingDirectory']}" in image
    assert f"COPY {package}/*.py {package}/" in image
    assert Path(EXAMPLES / package / "__main__.py").is_file()


def test_the_job_definition_triggers_never_see_its_own_checkpoints(definitions: dict[str, dict[str, Any]]) -> None:
    (definition,) = definitions.values()
    (uploads,) = [trigger["s3"] for trigger in definition["on"] if "s3" in trigger]

    assert not definition["checkpoint"].startswith(f"s3://{uploads['bucket']}/")
