from dataclasses import replace

import pytest

from relaunch.core.triggers.events import (
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
        (IMAGE, f"image trainer:{SHA}"),
        (DirectRequest("api:1", "resnet", caller=ROLE), "github-42"),
        (DirectRequest("api:1", "resnet", caller="arn:aws:iam::111122223333:root"), "root"),
        (DirectRequest("api:1", "resnet", image_tag="v1"), "direct call"),
        (DirectRequest("api:1", "resnet", retried=RetriedJob("resnet-1")), "retry of resnet-1"),
    ],
)
def test_what_started_a_job_has_a_form_in_a_few_words(event: TriggerEvent, short: str):
    assert collect_facts(event, repository="trainer").short == short
