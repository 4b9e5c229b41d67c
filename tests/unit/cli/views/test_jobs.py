"""What tables and shapes say of rarer things."""

from datetime import timedelta

import pytest
from rich.console import Console, RenderableType

from fakes.builders import make_definition, make_instance_type, make_offering
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    NeuronRequirement,
    PurchaseOption,
)
from relaunch.core.definitions.definition import GithubTrigger, ImageTrigger, ImageWait, S3Trigger
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.rows import explain_rows
from relaunch.core.selection.selection import RejectedOffering, Selection
from relaunch_cli.views.definitions import describe_accelerator, describe_trigger
from relaunch_cli.views.json_output import accelerator_shape, definition_shape, trigger_shape
from relaunch_cli.views.selection import render_selection


def text_of(renderable: RenderableType, width: int = 80) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


@pytest.mark.parametrize(
    ("accelerator", "words"),
    [
        (AcceleratorRequirement(gpu=GpuRequirement(2, 24576, ("A10G", "L4"))), "2x GPU A10G/L4 24GiB"),
        (AcceleratorRequirement(neuron=NeuronRequirement(devices=2)), "2 Neuron devices"),
        (AcceleratorRequirement(neuron=NeuronRequirement(cores=4)), "4 Neuron cores"),
        (AcceleratorRequirement(gpu=GpuRequirement(), instance_types=("g5.xlarge",)), "1x GPU; g5.xlarge"),
    ],
)
def test_accelerators_are_described_in_short(accelerator, words):
    assert describe_accelerator(accelerator) == words


def test_the_shape_of_an_accelerator_has_every_key():
    assert accelerator_shape(AcceleratorRequirement(neuron=NeuronRequirement(cores=4))) == {
        "gpu": None,
        "neuron": {"devices": None, "cores": 4},
        "instance_types": [],
    }


WAIT = ImageWait("trainer", "{sha}", timedelta(minutes=5))


@pytest.mark.parametrize(
    ("trigger", "words", "shape"),
    [
        (
            GithubTrigger("a/b", "push", branches=("main", "v*"), paths=("x/**",), wait_for_image=WAIT),
            "push a/b [main v*] [x/**], then image trainer",
            {
                "github": {
                    "repository": "a/b",
                    "event": "push",
                    "branches": ["main", "v*"],
                    "paths": ["x/**"],
                    "wait_for_image": {"repository": "trainer", "tag": "{sha}", "timeout_seconds": 300},
                }
            },
        ),
        (ImageTrigger("t", "{sha}"), "image t:{sha}", {"image": {"repository": "t", "tag": "{sha}"}}),
        (S3Trigger("b", "p/", ".x"), "s3://b/p/*.x", {"s3": {"bucket": "b", "prefix": "p/", "suffix": ".x"}}),
    ],
)
def test_triggers_are_described_in_short_and_as_json(trigger, words, shape):
    assert describe_trigger(trigger) == words
    assert trigger_shape(trigger) == shape


def test_durations_of_a_definition_are_seconds():
    shape = definition_shape(make_definition(deadline=timedelta(hours=36)))

    assert (shape["deadline_seconds"], shape["estimated_duration_seconds"]) == (129600, None)
    assert shape["max_runtime_seconds"] == 172800


def selection_of(*offerings, rejected=()) -> str:
    count = len(offerings) + len(rejected)
    selection = Selection(offerings, rejected, (("price-cap", count, len(offerings)),))
    return text_of(render_selection(explain_rows(selection), selection.filter_counts, 80))


@pytest.mark.parametrize(
    ("offering", "cell"),
    [
        (make_offering(zone="us-east-1a"), "us-east-1a"),
        (make_offering(zones=("us-east-1a",)), "us-east-1a"),
        (make_offering(zones=("us-east-1a", "us-east-1b")), "2 zones"),
        (make_offering(price_usd_per_hour=None), "<=1.0000"),
        (make_offering(price_usd_per_hour=None, on_demand_usd_per_hour=None), "?"),
    ],
)
def test_zones_and_prices_say_only_what_is_known(offering, cell):
    assert cell in selection_of(offering)


def rejections(count: int) -> list[RejectedOffering]:
    types = [make_instance_type(f"g5.{index}xlarge") for index in range(count)]
    return [
        RejectedOffering(make_offering(each, PurchaseOption.SPOT, zone="z"), "price-cap", Rejection("too dear"))
        for each in types
    ]


def test_many_offerings_rejected_for_one_reason_are_counted():
    assert "g5.5xlarge spot z, 3 more: too dear" in " ".join(selection_of(rejected=rejections(9)).split())


def test_one_too_many_is_named_rather_than_counted():
    assert "g5.6xlarge spot z: too dear" in " ".join(selection_of(rejected=rejections(7)).split())
