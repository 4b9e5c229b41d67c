"""Attacks of whoever has the secret of one repository on the others."""

import json
import random
from collections.abc import Iterator
from functools import partial
from itertools import product

from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.bodies import load_samples
from relaunch_local.attack.stack import AttackedStack, sign, signed_headers, to_body

_SECRETS = {"/": "of-everybody", "acme": "of-acme", "acme/vision": "of-vision", "other": "of-other"}
_SIGNS_FOR = {"acme/vision": "acme/vision", "ACME/Vision": "acme/vision", "acme/text": "acme", "other/x": "other"}
_PATHS = (
    *_SECRETS,
    "/acme/vision/",
    "acme/text",
    "acme/../other",
    "acme%2fvision",
    "acme//vision",
    "ACME",
    "acme/vision/x",
)


def foreign_secrets(_dice: random.Random, _count: int) -> Iterator[Attempt]:
    """Sign for every repository with every secret at every path: only the most specific one at its own path may."""
    stored = json.dumps({"scopes": {scope: {"secret": secret} for scope, secret in _SECRETS.items()}})
    stack = AttackedStack(secret=stored)
    for repository, scope, path in product((*_SIGNS_FOR, "third/party", "", "acme"), _SECRETS, _PATHS):
        may = _SIGNS_FOR.get(repository, "acme" if repository == "acme" else "/")
        is_allowed = scope == may and path.strip("/").lower() == may.strip("/")
        what = f"{repository or 'no repository'} signed with the secret of {scope} at {path}"
        yield attempt(what, partial(_send, stack, repository, scope, path, is_allowed=is_allowed))


def _send(stack: AttackedStack, repository: str, scope: str, path: str, *, is_allowed: bool) -> str | None:
    payload = {**load_samples()["github.push.json"], "repository": {"full_name": repository}}
    if not repository:
        del payload["repository"], payload["organization"]
    body = to_body(payload)
    headers = {**signed_headers("push", body), "x-hub-signature-256": sign(body, _SECRETS[scope])}
    stack.messages.clear()
    status = stack.post(headers, body, f"/{path.lstrip('/')}")
    if bool(stack.messages) == is_allowed and (status == 202) == is_allowed:
        return None
    return f"was answered {status}"
