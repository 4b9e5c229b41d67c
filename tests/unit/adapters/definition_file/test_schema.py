"""The published JSON Schema accepts the same definitions as the parser."""

import json

import pytest
import yaml
from jsonschema import Draft202012Validator

from fakes.definitions import EXAMPLE
from fakes.repository import REPOSITORY
from relaunch.adapters.definition_file.schema import write_schema

# To a reader of YAML 1.1, which PyYAML is, a plain `on` is true.
WITH_QUOTED_ON = EXAMPLE.replace("on:\n", '"on":\n').replace("{on: A10G", '{"on": A10G')


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
    assert errors(WITH_QUOTED_ON) == []
    assert errors(WITH_QUOTED_ON.replace("memory: 16GiB", "models: [L4, A10G]")) == []
    for estimate in ("20h@A10G", "20h", "{on: {model: Trainium2, count: 4}, hours: 0.5}"):
        measured = estimate.replace("on:", '"on":')
        assert errors(WITH_QUOTED_ON.replace('{"on": A10G, hours: 20}', measured)) == []


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
        pytest.param("memory: 16GiB", "models: [L4, RTX4090]", id="gpu-model"),
        pytest.param("gpu: {count: 1, memory: 16GiB}", "neuron: {devices: 1, models: [T4]}", id="neuron-model"),
        pytest.param("      - image:", "        image:", id="two-sources"),
        pytest.param("A10G, hours: 20", "A10, hours: 20", id="measured-on"),
        pytest.param('{"on": A10G, hours: 20}', '"20h@"', id="measured-nowhere"),
    ],
)
def test_what_the_parser_refuses_the_schema_refuses(right, wrong):
    assert right in WITH_QUOTED_ON

    assert errors(WITH_QUOTED_ON.replace(right, wrong, 1)) != []


def test_every_key_is_described_and_every_default_can_be_written():
    schema = json.loads(write_schema())
    defined = [schema, *(each for one in schema["$defs"].values() for each in one.get("anyOf", [one]))]
    models = [each for each in defined if "properties" in each]
    keys = [(name, value) for model in models for name, value in model["properties"].items()]

    assert [name for name, value in keys if not value.get("description")] == []
    assert "P2D" not in write_schema()
