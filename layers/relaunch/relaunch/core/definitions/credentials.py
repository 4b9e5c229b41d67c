"""What looks like a credential among the plain values of a definition, which everybody reads who may describe it.

It is a guess by names and by the forms of well-known tokens, and so a notice; the value itself is never repeated.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from relaunch.core.definitions.definition import JobDefinition

_NAME = re.compile(r"(?:TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|KEY)$|SECRET_|KEY_ID$", re.IGNORECASE)
# AWS, GitHub, Hugging Face, GitLab, Slack, OpenAI and others, Alibaba Cloud, Google, JSON Web Tokens, PEM, addresses.
_VALUE = re.compile(
    r"\b(?:A(?:KIA|SIA)[A-Z0-9]{16}|gh[pousr]_\w{20}|github_pat_\w{20}|hf_\w{20}|glpat-[\w-]{16}|xox[abprs]-[\w-]{10}|"
    r"sk-[\w-]{20}|LTAI[A-Za-z0-9]{12}|AIza[\w-]{30}|eyJ[\w-]{10,200}\.eyJ)|"
    r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----|://[^/\s:@]{1,100}:[^/\s:@]{1,200}@"
)
# A shorter value is a word or a number, and one of these forms says where or which something is.
_SHORTEST = 8
_PLAIN = re.compile(r"(?:[a-z0-9]*:/|\.{0,2}/|arn:).*|[a-z_ -]+|[0-9.]+", re.DOTALL)


def find_credential_notices(definition: JobDefinition) -> tuple[str, ...]:
    """Return what looks like a credential in a definition, and where it belongs; empty if nothing does."""
    has_pod = definition.target.capabilities.runs_pods
    found = list(_find_places(definition))
    if not found:
        return ()
    instead = "`kubernetes.secrets`" if has_pod else "`secrets` of the task definition's container"
    places = ", ".join(f"`{each}`" for each in found)
    text = (
        f"what looks like a credential is in {places}: it is stored with every job and shown to all who may read one; "
        f"put it into {instead}"
    )
    return (text,)


def _find_places(definition: JobDefinition) -> Iterator[str]:
    for name, value in definition.environment.items():
        if looks_like_credential(name, value):
            yield f"environment.{name}"
    for number, text in enumerate(definition.command):
        if _VALUE.search(text):
            yield f"command[{number}]"
    workload = definition.kubernetes
    if workload is not None and _has_token(workload.pod):
        yield "kubernetes.pod"


def looks_like_credential(name: str, value: str) -> bool:
    """Return whether a variable looks as if its value should not be known."""
    if _VALUE.search(value):
        return True
    return _NAME.search(name) is not None and len(value) >= _SHORTEST and _PLAIN.fullmatch(value) is None


def _has_token(value: Any) -> bool:
    if isinstance(value, Mapping):
        name = str(value.get("name", ""))
        literal = value.get("value")
        if isinstance(literal, str) and looks_like_credential(name, literal):
            return True
        return any(map(_has_token, value.values()))
    if isinstance(value, list):
        return any(map(_has_token, value))
    return isinstance(value, str) and _VALUE.search(value) is not None
