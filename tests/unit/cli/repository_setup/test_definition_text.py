import re
from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_container, make_offering, make_revision
from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.offerings.bundled import load_catalogue, load_on_demand_prices
from relaunch.core.definitions.concurrency import Concurrency
from relaunch.core.definitions.definition import GithubTrigger, ImageTrigger, ImageWait, JobDefinition, S3Trigger
from relaunch.core.definitions.filter_patterns import matches_filters
from relaunch_cli.repository_setup.definition_text import definition_text
from relaunch_cli.repository_setup.form import read_training
from relaunch_cli.repository_setup.training import AcceleratorKind, Training, Uploads
from relaunch_cli.repository_setup.watched_paths import WATCHED_PATHS
from unit.cli.repository_setup.trainings import STACK
from unit.core.selection.offered import ON_DEMAND, selected


def parsed(training: Training, ref: str = "refs/heads/main") -> JobDefinition:
    text = definition_text(training, "relaunch-vision", "acme/vision", replace(STACK, github_ref=ref))
    (definition,) = parse_definitions(text, "relaunch.yaml", load_catalogue(), ())
    return definition


def test_it_says_how_an_editor_checks_it_and_when_a_training_is_stopped():
    lines = definition_text(Training("vision"), "relaunch-vision", "acme/vision", STACK).splitlines()

    assert "# # yaml-language-server: $schema=relaunch.schema.json" in lines
    assert "    # max_runtime: 48h" in lines
    assert not any(re.match(r"#\s+yaml-language-server", line) for line in lines)


def test_an_image_of_a_commit_starts_the_job():
    definition = parsed(Training("vision", count=2, gpu_memory_gib=24))

    assert definition.triggers == (ImageTrigger("relaunch/trainer", "vision-{sha}"),)
    assert (definition.name, definition.task_definition, definition.container) == ("vision", "relaunch-vision", "main")
    assert definition.checkpoint_uri == "s3://acme-checkpoints/vision/"
    assert definition.accelerator.gpu is not None
    assert (definition.accelerator.gpu.count, definition.accelerator.gpu.memory_mib) == (2, 24 * 1024)


@pytest.mark.parametrize("has_webhook", [True, False])
def test_its_comments_are_true_without_a_workflow_too_and_say_what_guesses_decide(has_webhook):
    text = definition_text(Training("vision", has_webhook=has_webhook), "relaunch-vision", "acme/vision", STACK)
    lines = text.splitlines()
    before = {each.split(":")[0].strip(): lines[number] for number, each in enumerate(lines[1:])}

    assert "Without that file it is to be built in another way, and pushed" in before["on"]
    assert "What starts a job is the image of a commit: .github/workflows/train.yml builds it" in text or has_webhook
    assert "A guess, to be corrected: what costs least for so long a training" in before["estimated_duration"]
    assert "A guess, to be corrected: no machine that costs more" in before["max_price_per_hour"]
    assert max(map(len, lines)) <= 120


def test_with_a_webhook_the_push_starts_it_and_waits_for_the_image():
    definition = parsed(Training("vision", has_webhook=True), "refs/heads/1.0")

    wait = ImageWait("relaunch/trainer", "vision-{sha}", timedelta(hours=1))
    assert definition.triggers == (
        GithubTrigger(
            repository="acme/vision", event="push", branches=("1.0",), paths=WATCHED_PATHS, wait_for_image=wait
        ),
    )


@pytest.mark.parametrize(
    ("path", "is_watched"),
    [
        ("train.py", True),
        ("src/models/resnet.py", True),
        ("Dockerfile", True),
        (".github/workflows/train.yml", True),
        ("README.md", False),
        ("src/models/NOTES.md", False),
        ("docs/api/index.html", False),
        ("relaunch.yaml", False),
        (".github/workflows/plan.yml", False),
    ],
)
def test_pushes_that_change_the_image_start_a_job(path, is_watched):
    (trigger,) = parsed(Training("vision", has_webhook=True)).triggers

    assert isinstance(trigger, GithubTrigger)
    assert matches_filters(path, trigger.paths) == is_watched


def test_with_a_webhook_one_job_of_a_branch_trains_at_a_time_and_is_not_ended_by_a_push():
    definition = parsed(Training("vision", has_webhook=True))

    assert definition.concurrency == Concurrency("{branch}", cancel_in_progress=False)


@pytest.mark.parametrize(
    ("training", "ref"),
    [
        (Training("vision"), "refs/heads/main"),
        (Training("vision", uploads=Uploads("acme-data", "")), "refs/heads/main"),
        (Training("vision", has_webhook=True), "refs/tags/v1"),
    ],
)
def test_jobs_without_a_branch_run_side_by_side(training, ref):
    assert parsed(training, ref).concurrency is None


def test_with_a_webhook_a_tag_that_is_let_in_starts_it():
    (trigger,) = parsed(Training("vision", has_webhook=True), "refs/tags/v1").triggers

    assert isinstance(trigger, GithubTrigger)
    assert (trigger.tags, trigger.branches) == (("v1",), ())


@pytest.mark.parametrize("prefix", ["", "images/", 'a: "b" #{c}\\'])
def test_uploads_start_it_too(prefix):
    definition = parsed(Training("vision", uploads=Uploads("acme-data", prefix)))

    assert definition.triggers[1] == S3Trigger("acme-data", prefix)


def test_a_share_and_neuron_devices_are_what_it_needs():
    share = parsed(Training("vision", AcceleratorKind.SHARE, gpu_memory_gib=4, compute_percent=30)).accelerator
    neuron = parsed(Training("vision", AcceleratorKind.NEURON, count=2)).accelerator

    assert share.gpu is not None
    assert (share.gpu.compute_percent, share.gpu.memory_mib) == (30, 4096)
    assert neuron.neuron is not None
    assert neuron.neuron.devices == 2


@pytest.mark.parametrize(("count", "usd"), [(1, 10), (8, 80)])
def test_the_price_cap_lets_the_usual_machines_with_gpus_through(count, usd):
    assert parsed(Training("vision", count=count)).max_price_usd_per_hour == usd


def test_what_neuron_devices_reserve_and_cost_at_most_leaves_the_machines_that_have_so_many():
    prices = load_on_demand_prices().usd_per_hour
    # Those of Trainium2 are not bundled.
    offerings = [
        make_offering(row, ON_DEMAND, price_usd_per_hour=prices.get(row.name, 1.0), on_demand_usd_per_hour=None)
        for row in load_catalogue().values()
    ]
    for count in range(1, 17):
        training = read_training({"kind": "neuron", "count": str(count)}, "vision", None)
        reserved = make_container(gpu_count=0, vcpus=training.vcpus, memory_mib=training.memory_gib * 1024)
        found = selected(parsed(training), *offerings, revision=make_revision(containers=(reserved,)))

        small = {"trn1.2xlarge", "trn2.3xlarge"} if count == 1 else {"trn1.32xlarge", "trn1n.32xlarge"}
        assert {each.instance_type.name for each in found.kept} == small | {"trn2.48xlarge", "trn2u.48xlarge"}, count
        assert training.memory_gib >= 0.87 * (32 if count == 1 else 512)
