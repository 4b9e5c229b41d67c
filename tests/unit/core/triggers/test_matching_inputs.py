"""Direct requests, and the inputs that they and the events of GitHub bring."""

from dataclasses import replace

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.definition import InputRule
from relaunch.core.jobs.trigger_facts import TriggerFacts
from relaunch.core.triggers.events import DirectRequest, RepositoryDispatch
from relaunch.core.triggers.matching import MAX_INPUT_LENGTH, InvalidInputs, Match, NoMatch
from unit.core.triggers.matched import PUSH, WORKFLOW, github, match_event, matched


def test_a_direct_request_starts_the_definition_it_names_without_any_trigger():
    request = DirectRequest("api:key:1", "resnet", caller="ci")

    decision = matched(request)

    assert decision.trigger is None
    assert (decision.facts.source, decision.facts.summary) == ("direct", "asked for by ci")
    assert match_event(make_definition(name="other", triggers=()), request) == NoMatch("the request is for resnet")


def test_a_direct_request_may_come_from_nobody_known():
    request = DirectRequest("api:key:1", "resnet")

    assert matched(request, github("push")).facts == TriggerFacts(
        "direct", "api:key:1", "asked for", short="direct call"
    )


RULES = {"learning_rate": InputRule("[0-9.e-]+", "0.1"), "epochs": InputRule("[0-9]+", "90")}
DISPATCHED = RepositoryDispatch(
    identity="github:repository_dispatch:acme/vision:guid",
    repository="acme/vision",
    event_type="train",
    body_sha256="ab",
)


def test_declared_inputs_pass_and_defaults_are_added():
    event = replace(WORKFLOW, inputs={"learning_rate": "1e-3"})

    decision = matched(event, github("workflow_dispatch"), inputs=RULES)

    assert decision.inputs == {"learning_rate": "1e-3", "epochs": "90"}


@pytest.mark.parametrize(
    ("event", "trigger"),
    [
        pytest.param(DirectRequest("api:1", "resnet"), None, id="request"),
        pytest.param(WORKFLOW, github("workflow_dispatch"), id="workflow-dispatch"),
        pytest.param(DISPATCHED, github("repository_dispatch"), id="repository-dispatch"),
    ],
)
def test_an_input_that_is_not_declared_starts_no_job_with_the_default(event, trigger):
    definition = make_definition(triggers=(trigger,) if trigger else (), inputs=RULES)
    mistyped = replace(event, inputs={"epochs": "9", "learning_rat": "1e-3"})

    assert match_event(definition, mistyped) == InvalidInputs(
        "input 'learning_rat' is not declared in the job definition, which declares learning_rate, epochs",
        ("input 'learning_rat' is not declared in the job definition, which declares learning_rate, epochs",),
    )
    assert isinstance(match_event(definition, replace(event, inputs={"epochs": "9"})), Match)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["PATH"], "input 'PATH' is not declared in the job definition, which declares none"),
        (["b", "a"], "inputs 'a', 'b' are not declared"),
        ([f"n{number}" for number in range(5)], "inputs 'n0', 'n1', 'n2', 'n3', 'n4' are not declared"),
        ([f"n{number}" for number in range(8)], "inputs 'n0', 'n1', 'n2', 'n3', 'n4' and 3 more are not declared"),
    ],
)
def test_what_is_not_declared_is_named_in_a_message_of_a_limited_length(names, words):
    decision = match_event(make_definition(inputs={}), DirectRequest("api:1", "resnet", dict.fromkeys(names, "1")))

    assert isinstance(decision, InvalidInputs)
    assert words in decision.reason


@pytest.mark.parametrize(
    ("rule", "given_inputs", "error"),
    [
        pytest.param(InputRule("[0-9]+"), {}, "has no default and was not given", id="required"),
        pytest.param(
            InputRule("[0-9]+"), {"n": "12x"}, "n does not match [0-9]+: its value, 3 characters, is", id="whole-value"
        ),
        pytest.param(InputRule("[0-9]+"), {"n": "12\n"}, "does not match", id="no-newline-at-the-end"),
        pytest.param(InputRule("[0-9]+", "1"), {"n": ""}, "does not match", id="empty-is-given"),
        pytest.param(InputRule("x*"), {"n": "x" * (MAX_INPUT_LENGTH + 1)}, "has 1025 characters", id="too-long"),
    ],
)
def test_a_value_outside_its_pattern_starts_nothing(rule, given_inputs, error):
    decision = match_event(make_definition(inputs={"n": rule}), DirectRequest("api:1", "resnet", given_inputs))

    assert isinstance(decision, InvalidInputs)
    assert error in decision.reason
    assert len(decision.errors) == 1


@pytest.mark.parametrize("secret", ["hunter2", "hunter2" * 10, "hunter2" * 200])
def test_a_value_that_is_refused_is_not_in_what_is_stored_and_logged(secret):
    decision = match_event(
        make_definition(inputs={"n": InputRule("[0-9]+")}), DirectRequest("api:1", "resnet", {"n": secret})
    )

    assert isinstance(decision, InvalidInputs)
    assert "hunter2" not in decision.reason


def test_everything_wrong_with_the_inputs_is_told_in_one_sentence():
    rules = {"n": InputRule("[0-9]+"), "m": InputRule("[0-9]+")}

    decision = match_event(make_definition(inputs=rules), DirectRequest("api:1", "resnet"))

    assert isinstance(decision, InvalidInputs)
    assert len(decision.errors) == 2
    assert decision.reason == "; ".join(decision.errors)


def test_a_push_takes_the_defaults_of_inputs():
    assert matched(PUSH, github("push"), inputs={"n": InputRule("[0-9]+", "5")}).inputs == {"n": "5"}


def test_an_input_may_be_as_long_as_is_allowed():
    longest = "x" * MAX_INPUT_LENGTH

    decision = matched(DirectRequest("api:1", "resnet", {"n": longest}), github("push"), inputs={"n": InputRule("x*")})

    assert decision.inputs == {"n": longest}
