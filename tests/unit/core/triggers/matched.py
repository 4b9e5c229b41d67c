"""Events that the tests of matching have in common, and what their jobs get of them."""

import re

from fakes.builders import make_definition
from relaunch.core.definitions.definition import GithubTrigger, JobDefinition, S3Trigger, Trigger
from relaunch.core.triggers.events import ImagePushed, ObjectCreated, Push, TriggerEvent, WorkflowDispatch, trigger_keys
from relaunch.core.triggers.matching import InvalidInputs, Match, NoMatch, match

SHA = "4b1d8e6f02a97c35e8d0714b6a2f93c5d8e07b1a"
PUSH = Push(
    identity="github:push:acme/vision:refs/heads/main:a:b",
    repository="acme/vision",
    ref="refs/heads/main",
    sha=SHA,
    paths=("README.md", "train/resnet.py"),
    sender="sara",
)
WORKFLOW = WorkflowDispatch(
    identity="github:workflow_dispatch:acme/vision:guid",
    repository="acme/vision",
    ref="refs/heads/main",
    workflow=".github/workflows/train.yml",
    body_sha256="ab",
)
UPLOAD = ObjectCreated("s3:acme-datasets:sequencer=1:images/a b.manifest", "acme-datasets", "images/a b.manifest")
IMAGE = ImagePushed(f"ecr:trainer:{SHA}:sha256:aa", "trainer", SHA, "sha256:aa")
UPLOAD_TRIGGER = S3Trigger("acme-datasets")


def github(event: str, **filters) -> GithubTrigger:
    return GithubTrigger(repository="acme/vision", event=event, **filters)


def match_event(definition: JobDefinition, event: TriggerEvent) -> Match | NoMatch | InvalidInputs:
    return match(definition, event, lambda pattern, value: re.fullmatch(pattern, value) is not None)


def matched(event: TriggerEvent, *triggers: Trigger, **definition) -> Match:
    decision = match_event(make_definition(triggers=triggers, **definition), event)
    assert isinstance(decision, Match)
    return decision


def reason_against(event: TriggerEvent, *triggers: Trigger) -> str:
    decision = match_event(make_definition(triggers=triggers), event)
    assert isinstance(decision, NoMatch)
    return decision.reason


def facts_of(event: TriggerEvent, trigger: Trigger) -> tuple[str, dict[str, str]]:
    """Return what people and what the training are told."""
    facts = matched(event, trigger).facts
    assert facts.identity == event.identity
    assert facts.source == trigger_keys(event)[0]
    return facts.summary, dict(facts.environment)
