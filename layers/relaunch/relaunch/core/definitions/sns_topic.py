"""SNS topics as triggers have them: what is wrong with an ARN, and where the values of a message are.

Source: CreateTopic in the API reference of Amazon SNS (names of 1 to 256 letters, digits, hyphens and underscores; that
of a FIFO topic ends with `.fifo`).
"""

import re

TOPIC_PATTERN = r"arn:aws[a-z-]*:sns:[a-z0-9-]{1,30}:[0-9]{12}:[A-Za-z0-9_-]{1,256}"
"""The ARN of a standard topic."""

PATH_PATTERN = r"[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,9}"
"""The path of a value within a message."""

_TOPIC = re.compile(TOPIC_PATTERN)
_FIFO = ".fifo"

MESSAGE_PARTS = ("message", "text", "subject", "attributes")
"""What a path begins with: the JSON within the message, its whole text, its subject, its attributes by name."""


def find_topic_problem(topic: str) -> str:
    """Return what is wrong with the ARN of a topic, and what to do; empty if nothing is."""
    if topic.endswith(_FIFO) and _TOPIC.fullmatch(topic.removesuffix(_FIFO)):
        return f"`{topic}` is a FIFO topic, and the queue of the stack is none: use a standard topic"
    if _TOPIC.fullmatch(topic) is None:
        return f"`{topic[:80]}` is no topic of SNS: write its ARN, like arn:aws:sns:eu-central-1:111122223333:features"
    return ""


def find_part_problem(path: str) -> str:
    """Return what is wrong with the path of a value within a message, and what to do; empty if nothing is."""
    if re.fullmatch(PATH_PATTERN, path) is None:
        return f"`{path[:80]}` is not a path within the message: write it like message.epochs"
    part, _, rest = path.partition(".")
    if part not in MESSAGE_PARTS:
        return f"`{path}` begins with none of {', '.join(MESSAGE_PARTS)}: write message.epochs for `epochs` in its JSON"
    is_attribute = bool(rest) and "." not in rest
    if part == "attributes" and not is_attribute:
        return f"`{path}` names no attribute of the message: write it like attributes.dataset"
    if part in ("text", "subject") and rest:
        return f"`{part}` is a text and has no parts: write message.{rest} for a part of the JSON within the message"
    return ""
