"""Values of `sns` triggers in definition files: the ARN of a topic, and the path of a value within a message."""

from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from relaunch.core.definitions.sns_topic import PATH_PATTERN, TOPIC_PATTERN, find_part_problem, find_topic_problem


def _check_topic(value: str) -> str:
    if problem := find_topic_problem(value):
        raise ValueError(problem)
    return value


def _check_part(value: str) -> str:
    if problem := find_part_problem(value):
        raise ValueError(problem)
    return value


TopicArn = Annotated[
    str, AfterValidator(_check_topic), WithJsonSchema({"type": "string", "pattern": f"^(?:{TOPIC_PATTERN})$"})
]
MessagePath = Annotated[
    str, AfterValidator(_check_part), WithJsonSchema({"type": "string", "pattern": f"^(?:{PATH_PATTERN})$"})
]
