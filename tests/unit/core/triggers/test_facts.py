from dataclasses import replace

import pytest

from relaunch.core.jobs.trigger_facts import TriggerFacts
from relaunch.core.triggers.events import (
    BusEvent,
    DirectRequest,
    Package,
    Push,
    Release,
    RepositoryDispatch,
    RetriedJob,
    TriggerEvent,
    WorkflowRun,
)
from relaunch.core.triggers.facts import collect_facts
from unit.core.triggers.matched import IMAGE, PUSH, SHA, UPLOAD, WORKFLOW

ORIGIN = {"identity": "github:1", "repository": "acme/vision", "ref": "refs/heads/main"}
ROLE = "arn:aws:sts::111122223333:assumed-role/ci/github-42"


@pytest.mark.parametrize(
    ("event", "short"),
    [
        (PUSH, "push 4b1d8e6 main"),
        (Push(identity="github:2", repository="acme/vision", ref="refs/tags/v1", sha=SHA), "push 4b1d8e6 v1"),
        (WORKFLOW, "workflow train.yml main"),
        (WorkflowRun(**ORIGIN, action="completed", workflow="build"), "workflow build main"),
        (RepositoryDispatch(**ORIGIN, event_type="train", body_sha256="ab"), "dispatch train"),
        (Release(**(ORIGIN | {"ref": "refs/tags/v2"}), action="published"), "release v2"),
        (Package(**ORIGIN, action="published", package="trainer", tag="v3"), "package trainer:v3"),
        (UPLOAD, "upload a b.manifest"),
        (replace(UPLOAD, key="images/"), "upload images/"),
        (replace(UPLOAD, key="images/2026/cats.jpg"), "upload cats.jpg"),
        (BusEvent("eb:1", "k", "1", "com.acme", "Features Ready"), "event Features Ready"),
        (IMAGE, f"image trainer:{SHA}"),
        (DirectRequest("api:1", "resnet", caller=ROLE), "github-42"),
        (DirectRequest("api:1", "resnet", caller="arn:aws:iam::111122223333:root"), "root"),
        (DirectRequest("api:1", "resnet", image_tag="v1"), "direct call"),
        (DirectRequest("api:1", "resnet", retried=RetriedJob("resnet-1")), "retry of resnet-1"),
    ],
)
def test_what_started_a_job_has_a_form_in_a_few_words(event: TriggerEvent, short: str):
    assert collect_facts(event, repository="trainer").short == short


def test_who_asked_for_a_job_is_known_with_and_without_an_image() -> None:
    asked = DirectRequest("api:1", "resnet", caller=ROLE)

    assert collect_facts(asked, repository="trainer") == TriggerFacts(
        "direct", "api:1", f"asked for by {ROLE}", caller=ROLE, short="github-42"
    )
    facts = collect_facts(replace(asked, image_tag="v1"), repository="trainer")
    assert replace(facts, environment={}) == TriggerFacts(
        "direct", "api:1", f"asked for by {ROLE} with image trainer:v1", caller=ROLE, short="github-42"
    )
