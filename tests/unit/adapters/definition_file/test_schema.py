"""The published JSON Schema accepts the same definitions as the parser."""

import json

import pytest
import yaml
from jsonschema import Draft202012Validator

from fakes.repository import REPOSITORY
from relaunch.adapters.definition_file.schema import write_schema

EXAMPLE = """
jobs:
  resnet:
    task_definition: trainer
    container: main
    "on":
      - github: {repository: acme/vision, event: push, branches: [main], paths: ["train/**"]}
      - github: {repository: acme/vision, event: workflow_dispatch}
      - image: {repository: trainer, tag: "{sha}"}
      - s3: {bucket: acme-datasets, prefix: images/, suffix: .manifest}
    inputs:
      learning_rate: {pattern: "[0-9.e-]+", default: "0.1"}
    accelerator:
      gpu: {count: 1, memory: 16GiB}
    disk: 200GiB
    purchase: spot-then-on-demand
    checkpoint: s3://acme-checkpoints/resnet/
    estimated_duration: 20h
    deadline: 36h
    max_runtime: 48h
    max_running_jobs: 5
    max_failures: 2
    max_price_per_hour: 4.00
    target: ecs
"""


def errors(text: str) -> list[str]:
    validator = Draft202012Validator(json.loads(write_schema()))
    return [error.message for error in validator.iter_errors(yaml.safe_load(text))]


def test_the_published_schema_is_current():
    published = (REPOSITORY / "docs" / "relaunch.schema.json").read_text(encoding="utf-8")

    assert published == write_schema(), (
        "write it anew: python -m relaunch.adapters.definition_file.schema docs/relaunch.schema.json"
    )


def test_the_schema_is_a_schema_of_draft_2020_12():
    schema = json.loads(write_schema())

    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_example_of_the_design_is_accepted():
    assert errors(EXAMPLE) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        pytest.param("accelerator:", "acelerator:", id="unknown-key"),
        pytest.param("16GiB", "16GB", id="decimal-unit"),
        pytest.param("max_runtime: 48h", "max_runtime: 48", id="no-unit"),
        pytest.param("event: push", "event: psh", id="event"),
        pytest.param("event: push", "event: release", id="filter-of-another-event"),
        pytest.param("purchase: spot-then-on-demand", "purchase: spt", id="purchase"),
        pytest.param("learning_rate", "Learning-Rate", id="input-name"),
        pytest.param("resnet:", "ResNet:", id="job-name"),
        pytest.param("container: main", "container:", id="null"),
        pytest.param("memory: 16GiB", "compute_percent: 30", id="share-without-memory"),
        pytest.param("memory: 16GiB", "memory: 2GiB, compute_percent: 101", id="share-of-more-than-all"),
        pytest.param("target: ecs", "target: ack", id="target"),
        pytest.param("gpu: {count: 1, memory: 16GiB}", "{}", id="no-accelerator"),
        pytest.param("      - image:", "        image:", id="two-sources"),
    ],
)
def test_what_the_parser_refuses_the_schema_refuses(right, wrong):
    assert right in EXAMPLE

    assert errors(EXAMPLE.replace(right, wrong, 1)) != []


def test_every_key_is_described_and_every_default_can_be_written():
    schema = json.loads(write_schema())
    models = [schema, *schema["$defs"].values()]
    keys = [(name, value) for model in models for name, value in model["properties"].items()]

    assert [name for name, value in keys if not value.get("description")] == []
    assert "P2D" not in write_schema()
