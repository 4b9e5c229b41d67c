"""The behaviour of RevisionRegistry: the fake, and the adapter with the ECS simulator."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fakes.builders import make_revision
from fakes.registry import FakeRegistry
from fakes.task_clusters import simulated_cluster
from relaunch.adapters.aws.ecs.derived_revisions import EcsRegistry
from relaunch.core.launches.derived_revision import DERIVED_FROM, RevisionChanges, TaskDefinition, derive
from relaunch.core.selection.neuron_devices import FIRST_PORT, NeuronClaim
from relaunch.ports import PermanentError, RevisionRegistry

SOURCE = make_revision().arn
PINNED = "111122223333.dkr.ecr.us-east-1.amazonaws.com/trainer@sha256:5e07"


@pytest.fixture(params=["fake", "ECS in process", "ECS over HTTP"])
def registry(request: pytest.FixtureRequest) -> Iterator[RevisionRegistry]:
    """A registry that knows the revision of `make_revision`."""
    if request.param == "fake":
        yield FakeRegistry()
        return
    with simulated_cluster(over_http=request.param == "ECS over HTTP") as cluster:
        yield EcsRegistry(cluster.ecs)


def wanted(registry: RevisionRegistry, image: str = PINNED) -> TaskDefinition:
    return derive(SOURCE, registry.load_definition(SOURCE), RevisionChanges({"main": image}))


def test_a_source_is_read_as_it_could_be_registered(registry: RevisionRegistry) -> None:
    source = registry.load_definition(SOURCE)

    assert source.family == make_revision().family
    assert [each["name"] for each in source.content["containerDefinitions"]] == ["main"]
    assert "revision" not in source.content
    assert "family" not in source.content


def test_a_revision_that_is_not_there_is_permanent(registry: RevisionRegistry) -> None:
    with pytest.raises(PermanentError, match="trainer--0000000000000000:9"):
        registry.load_definition(SOURCE.replace("trainer:7", "trainer--0000000000000000:9"))


def test_what_was_not_registered_is_not_found(registry: RevisionRegistry) -> None:
    assert registry.find_active(wanted(registry)) is None
    assert registry.list_families() == []


def test_what_was_registered_is_found_again_by_name_with_its_content(registry: RevisionRegistry) -> None:
    definition = wanted(registry)

    arn = registry.register(definition)

    assert registry.find_active(definition) == arn
    assert registry.list_families() == [definition.family]
    registered = registry.load_definition(arn)
    assert registered.content["containerDefinitions"][0]["image"] == PINNED
    assert registered.tags[DERIVED_FROM] == SOURCE
    assert registered == definition


def test_devices_and_ports_are_registered(registry: RevisionRegistry) -> None:
    changes = RevisionChanges({}, "main", NeuronClaim((2,)))
    arn = registry.register(derive(SOURCE, registry.load_definition(SOURCE), changes))

    (container,) = registry.load_definition(arn).content["containerDefinitions"]
    assert [each["hostPath"] for each in container["linuxParameters"]["devices"]] == ["/dev/neuron2"]
    assert [each["hostPort"] for each in container["portMappings"]] == [FIRST_PORT + 2]


def test_registered_by_two_at_once_both_are_there_and_the_newer_is_found(registry: RevisionRegistry) -> None:
    definition = wanted(registry)
    first, second = registry.register(definition), registry.register(definition)

    assert first != second
    assert registry.find_active(definition) == second


def test_what_somebody_else_registered_under_the_name_is_not_found_and_ours_comes_after_it(
    registry: RevisionRegistry,
) -> None:
    definition = wanted(registry)
    first = registry.register(definition)
    (container,) = definition.content["containerDefinitions"]
    for change in ({"image": "somebody/else:1"}, {"command": ["sh"]}, {"privileged": True}):
        content = {**definition.content, "containerDefinitions": [{**container, **change}]}
        registry.register(replace(definition, content=content))
        assert registry.find_active(definition) is None

    ours = registry.register(definition)
    assert registry.find_active(definition) == ours
    assert ours != first


def test_what_was_found_before_is_not_compared_again(registry: RevisionRegistry) -> None:
    definition = wanted(registry)
    changed = registry.register(replace(definition, content={**definition.content, "networkMode": "host"}))

    assert registry.find_active(definition) is None
    assert registry.find_active(definition, known_arn=changed) == changed


def test_a_revision_is_active_until_it_is_deregistered_also_behind_a_newer_one(registry: RevisionRegistry) -> None:
    definition = wanted(registry)
    first = registry.register(definition)
    second = registry.register(definition)

    assert registry.is_active(first)
    registry.deregister_family(definition.family)
    assert not registry.is_active(first)
    assert not registry.is_active(second)
    assert not registry.is_active(SOURCE.replace("trainer:7", "trainer--0000000000000000:9"))


def test_a_deregistered_family_is_not_found_and_can_be_registered_again(registry: RevisionRegistry) -> None:
    definition, other = wanted(registry), wanted(registry, "another@sha256:00")
    registry.register(definition)
    registry.register(definition)
    kept = registry.register(other)

    assert registry.deregister_family(definition.family) == 2

    assert registry.find_active(definition) is None
    assert registry.list_families() == [other.family]
    assert registry.find_active(other) == kept
    again = registry.register(definition)
    assert registry.find_active(definition) == again


def test_deregistering_twice_is_harmless(registry: RevisionRegistry) -> None:
    definition = wanted(registry)
    registry.register(definition)
    registry.deregister_family(definition.family)

    assert registry.deregister_family(definition.family) == 0
    assert registry.deregister_family("trainer--0000000000000000") == 0


def test_other_peoples_families_are_neither_listed_nor_deregistered(registry: RevisionRegistry) -> None:
    content: dict[str, Any] = {"containerDefinitions": [{"name": "main", "image": "x", "memory": 64}]}
    named_alike = TaskDefinition("nightly--0123456789abcdef", content, {"team": "vision"})
    registry.register(named_alike)

    assert registry.deregister_family("trainer") == 0
    assert registry.deregister_family(named_alike.family) == 0
    assert registry.find_active(named_alike) is None
    assert registry.load_definition(SOURCE).family == "trainer"
