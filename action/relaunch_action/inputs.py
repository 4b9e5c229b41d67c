"""The inputs of the action (action.yml), which come as one JSON text: an expression in a script would be executed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from relaunch_action.errors import ActionError

VARIABLE = "RELAUNCH_ACTION_INPUTS"
PLAN_MODE = "plan"
_MODES = ("submit", PLAN_MODE)
MAX_WAIT_MINUTES = 7_200
"""Five days: the longest a job of a self-hosted runner may take ("Actions limits", GitHub Docs)."""

_URL_REGION = re.compile(r"\.lambda-url\.([a-z0-9-]+)\.")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+")
_LOOPBACK = ("127.0.0.1", "localhost")
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True)
class Inputs:
    """The inputs, checked; `role_arn` and `idempotency_key` are empty if they were not given.

    So is `definition` where a definition file is planned.
    """

    url: str
    region: str
    role_arn: str
    definition: str
    inputs: Mapping[str, str]
    image_tag: str
    idempotency_key: str
    wait: bool
    wait_seconds: float
    dry_run: bool
    cancel_with_workflow: bool
    mode: str = "submit"
    definition_file: str = ""
    github_token: str = ""
    comment: bool = True


def parse_inputs(environment: Mapping[str, str]) -> Inputs:
    """Parse the inputs that the runner passes.

    Raises:
        ActionError: some are invalid; the message lists all errors.
    """
    parser = _Parser(_load(environment))
    mode = parser.mode()
    url = parser.url(mode)
    inputs = Inputs(
        url=url,
        region=parser.region(url, environment),
        role_arn=parser.role(),
        definition=parser.text("definition", required=mode != PLAN_MODE),
        inputs=parser.job_inputs(),
        image_tag=parser.text("image-tag"),
        idempotency_key=parser.text("idempotency-key"),
        wait=parser.flag("wait"),
        wait_seconds=parser.minutes("wait-timeout-minutes") * 60,
        dry_run=parser.flag("dry-run"),
        cancel_with_workflow=parser.flag("cancel-with-workflow"),
        mode=mode,
        definition_file=parser.file(mode),
        github_token=parser.text("github-token"),
        comment=parser.flag("comment"),
    )
    if parser.errors:
        raise ActionError("; ".join(parser.errors))
    return inputs


def _load(environment: Mapping[str, str]) -> Mapping[str, Any]:
    try:
        given = json.loads(environment[VARIABLE])
    except (KeyError, ValueError, RecursionError) as error:
        raise ActionError(f"{VARIABLE} has no JSON: use the action by its action.yml") from error
    if not isinstance(given, dict):
        raise ActionError(f"{VARIABLE} is no JSON object: use the action by its action.yml")
    return given


class _Parser:
    """Reads inputs one by one and collects errors."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self.errors: list[str] = []

    def text(self, name: str, *, required: bool = False) -> str:
        value = self._given.get(name)
        text = value.strip() if isinstance(value, str) else ""
        if required and not text:
            self._fail(name, "is missing")
        return text

    def flag(self, name: str) -> bool:
        text = self.text(name) or "false"
        if text not in _FLAGS:
            self._fail(name, f"is {text!r}: write true or false")
        return _FLAGS.get(text, False)

    def minutes(self, name: str) -> int:
        text = self.text(name)
        if not re.fullmatch(r"[0-9]{1,6}", text) or not 1 <= int(text) <= MAX_WAIT_MINUTES:
            self._fail(name, f"is {text!r}: write a whole number from 1 to {MAX_WAIT_MINUTES}")
            return 1
        return int(text)

    def mode(self) -> str:
        mode = self.text("mode") or _MODES[0]
        if mode not in _MODES:
            self._fail("mode", f"is {mode!r}: write {' or '.join(_MODES)}")
        return mode

    def file(self, mode: str) -> str:
        file = self.text("definition-file")
        parts = file.split("/")
        if mode == PLAN_MODE and (not file or any(each in ("", ".", "..") for each in parts)):
            self._fail("definition-file", f"is {file!r}: write its path in the repository, for example relaunch.yaml")
        return file

    def url(self, mode: str) -> str:
        url = self.text("url", required=True)
        if url and not is_allowed_url(url):
            output = "PlanApiUrl" if mode == PLAN_MODE else "JobApiUrl"
            self._fail("url", f"is {url!r}: write the stack's output {output}, which begins with https://")
        return url

    def region(self, url: str, environment: Mapping[str, str]) -> str:
        found = _URL_REGION.search(url)
        region = self.text("aws-region") or (found[1] if found else environment.get("AWS_REGION", ""))
        if url and not re.fullmatch(r"[a-z0-9-]+", region):
            self._fail("aws-region", f"is {region!r}: write the stack's region, which the url does not name")
        return region

    def role(self) -> str:
        role = self.text("role-to-assume")
        if role and not _ROLE.fullmatch(role):
            self._fail("role-to-assume", f"is {role!r}: write the ARN of an IAM role")
        return role

    def job_inputs(self) -> Mapping[str, str]:
        text = self.text("inputs") or "{}"
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            self._fail("inputs", f'is no JSON ({error}): write for example {{"learning_rate": "0.1"}}')
            return {}
        if values is None:
            return {}  # toJSON(inputs) of a workflow without inputs
        if not isinstance(values, dict):
            self._fail("inputs", "is no JSON object: write names and values between braces")
            return {}
        texts = {name: _text_of(value) for name, value in values.items()}
        for name in (name for name, value in texts.items() if value is None):
            self._fail("inputs", f"has no text, number or boolean as the value of {name!r}")
        return {name: value for name, value in texts.items() if value is not None}

    def _fail(self, name: str, problem: str) -> None:
        self.errors.append(f"the input {name} {problem}")


def is_allowed_url(url: str) -> bool:
    """Return whether a signed request may go there: never over a network unencrypted."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return False  # no request has such a line
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port
    except ValueError:
        return False
    is_local = parts.scheme == "http" and host in _LOOPBACK
    return bool(host) and port != 0 and not parts.query and not parts.username and (parts.scheme == "https" or is_local)


def _text_of(value: object) -> str | None:
    """Return a value of `toJSON(inputs)` as text: inputs of workflows may be numbers and booleans."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, (bool, int, float)) else None
