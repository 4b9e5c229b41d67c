"""Which messages of topics start jobs, with which inputs and facts."""

from collections.abc import Mapping
from dataclasses import replace

from fakes.builders import make_definition
from relaunch.core.definitions.definition import InputRule, S3Trigger, SnsTrigger, TriggerSource, trigger_origins
from relaunch.core.triggers.events import ObjectCreated, TopicMessage, trigger_keys
from relaunch.core.triggers.matching import InvalidInputs, Match, NoMatch, match

TOPIC = "arn:aws:sns:eu-central-1:111122223333:features"
MESSAGE = TopicMessage(
    f"sns:{TOPIC}:m-1",
    TOPIC,
    "m-1",
    {
        "text": "the whole",
        "message": {"epochs": 20, "nested": {"is_full": True, "rows": [1]}},
        "attributes": {"dataset": "s3://acme/1/"},
    },
)


def decide(event: object = MESSAGE, **inputs: str) -> Match | NoMatch | InvalidInputs:
    rules = dict.fromkeys(inputs, InputRule(".*"))
    definition = make_definition(triggers=(SnsTrigger(TOPIC, tuple(inputs.items())),), inputs=rules)
    return match(definition, event, lambda pattern, value: True)  # type: ignore[arg-type]


def inputs_of(**inputs: str) -> Mapping[str, str]:
    found = decide(**inputs)
    assert isinstance(found, Match)
    return found.inputs


def test_a_message_is_found_under_its_topic() -> None:
    assert trigger_keys(MESSAGE) == (TriggerSource.SNS, TOPIC)
    assert trigger_origins(make_definition(triggers=(SnsTrigger(TOPIC),))) == {(TriggerSource.SNS, TOPIC)}


def test_a_message_starts_a_job_that_is_told_which_it_was() -> None:
    found = decide()

    assert isinstance(found, Match)
    assert found.facts.source == "sns"
    assert found.facts.identity == MESSAGE.identity
    assert found.facts.summary == "message m-1 on the topic features"
    assert found.facts.short == "message on features"
    assert found.facts.environment == {"RELAUNCH_SNS_TOPIC_ARN": TOPIC, "RELAUNCH_SNS_MESSAGE_ID": "m-1"}


def test_inputs_are_parts_of_the_message() -> None:
    assert inputs_of(
        epochs="message.epochs", full="message.nested.is_full", whole="text", dataset="attributes.dataset"
    ) == {"epochs": "20", "full": "true", "whole": "the whole", "dataset": "s3://acme/1/"}


def test_what_the_message_does_not_have_is_not_given() -> None:
    found = decide(rows="message.nested.rows", subject="subject")

    assert isinstance(found, InvalidInputs)
    assert found.errors == (
        "input rows has no default and was not given",
        "input subject has no default and was not given",
    )


def test_a_text_that_is_too_long_for_an_input_starts_nothing() -> None:
    found = decide(replace(MESSAGE, content={"text": "x" * 1025}), whole="text")

    assert isinstance(found, InvalidInputs)
    assert found.reason == "input whole has 1025 characters, 1024 are allowed"


def test_a_message_of_another_topic_and_another_event_start_nothing() -> None:
    upload = ObjectCreated("s3:1", "acme", "key")

    assert isinstance(decide(replace(MESSAGE, topic=f"{TOPIC}-b")), NoMatch)
    assert isinstance(decide(upload), NoMatch)
    watching = make_definition(triggers=(S3Trigger("acme"),))
    assert isinstance(match(watching, MESSAGE, lambda pattern, value: True), NoMatch)
