"""Several repositories in one stack: what one's role submits, the other's cannot, with what `relaunch init` writes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from fakes.busy_stack import BusyStack
from fakes.webhook import load_event
from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch_cli.repository_setup.definition_text import definition_text
from relaunch_cli.repository_setup.training import Training
from unit.cli.repository_setup.trainings import ROLE, STACK

# As CloudFormation names roles; STS leaves out their path.
SPEECH = "relaunch-github-acme-speech-SubmitRole-0A1B2C"
OTHERS = ("relaunch-training-SubmitRole-3D4E5F", "relaunch-github-acme-speech-PlanRole-6A7B8C", f"{SPEECH}D")


def ask(stack: BusyStack, role: str, action: str) -> dict[str, Any]:
    event = load_event("function-url.job-api")
    arn = f"arn:aws:sts::111122223333:assumed-role/{role}/relaunch-1658821493-1"
    event["requestContext"]["authorizer"] = {"iam": {"userArn": arn}}
    answer: dict[str, Any] = stack.functions.invoke(
        "job_api", {**event, "body": json.dumps({"action": action, "definition": "speech"})}
    )
    return answer


@pytest.fixture
def stack() -> BusyStack:
    stack = BusyStack()
    theirs = replace(STACK, callers=(f"{ROLE}/{SPEECH}",), github_repository="acme/speech")
    text = definition_text(Training("speech"), "trainer", "acme/speech", theirs)
    (definition,) = parse_definitions(text, "relaunch.yaml", load_catalogue())
    stack.functions.deps.definitions.save_definition(definition)
    return stack


def test_a_repository_starts_its_own_definition(stack: BusyStack) -> None:
    assert ask(stack, SPEECH, "submit")["statusCode"] == 201


@pytest.mark.parametrize("role", OTHERS)
@pytest.mark.parametrize("action", ["submit", "plan"])
def test_the_role_of_another_one_starts_and_plans_nothing_of_it(stack: BusyStack, role: str, action: str) -> None:
    answer = ask(stack, role, action)

    assert answer["statusCode"] == 403
    assert "CallerNotListed" in answer["body"]
    assert stack.started == []
