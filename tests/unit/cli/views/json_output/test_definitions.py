"""JSON of job definitions."""

from datetime import timedelta

from fakes.builders import make_definition
from relaunch.core.definitions.accelerator import AcceleratorRequirement, NeuronRequirement
from relaunch.core.definitions.ownership import RegisteredDefinition
from relaunch.core.market.policies import PolicyName
from relaunch_cli.views.json_output.definitions import accelerator_json, definition_json


def test_an_accelerator_has_every_key():
    assert accelerator_json(AcceleratorRequirement(neuron=NeuronRequirement(cores=4))) == {
        "gpu": None,
        "neuron": {"devices": None, "cores": 4, "models": [], "purpose": "training"},
        "instance_types": [],
    }


def test_durations_of_a_definition_are_seconds():
    document = definition_json(RegisteredDefinition(make_definition(deadline=timedelta(hours=36)), None, 1))

    assert (document["deadline_seconds"], document["estimated_duration_seconds"]) == (129600, None)
    assert document["max_runtime_seconds"] == 172800


def test_the_market_policy_of_a_definition_is_said():
    definition = make_definition(patience=timedelta(hours=2), total_steps=900, policy=PolicyName.GREEDY, padding=0.2)

    document = definition_json(RegisteredDefinition(definition, None, 1))

    assert (document["patience_seconds"], document["total_steps"]) == (7200, 900)
    assert (document["policy"], document["padding"]) == ("greedy", 0.2)
