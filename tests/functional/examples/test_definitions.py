"""The example job definition, task definition and image belong together and are what AWS accepts."""

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from botocore.validate import ParamValidator

from functional.examples.attempts import EXAMPLES


@pytest.fixture
def task_definition() -> dict[str, Any]:
    return json.loads((EXAMPLES / "task-definition.json").read_text())  # type: ignore[no-any-return]


@pytest.fixture
def definitions() -> dict[str, dict[str, Any]]:
    # The base loader makes only strings; the safe one would read the key `on` as true, as YAML 1.1 has it.
    text = (EXAMPLES / "relaunch.yaml").read_text()
    return yaml.load(text, Loader=yaml.BaseLoader)["jobs"]  # type: ignore[no-any-return]  # noqa: S506 - see above


def test_the_task_definition_is_a_valid_request_to_register_it(task_definition: dict[str, Any]) -> None:
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
