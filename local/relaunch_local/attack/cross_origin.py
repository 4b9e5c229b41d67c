"""Attacks of web pages, and of whoever reaches the ports of the local world without its credentials."""

import json
import random
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.requests import Call
from relaunch_local.request_guard.credentials import Credentials, random_root_credentials
from relaunch_local.stack.containers import Containers
from relaunch_local.stack.emulator import ACCOUNT, running_emulator
from relaunch_local.stack.local_world import LocalWorldSettings, running_simulator
from relaunch_local.stack.policies import RolePolicies

# Python's own server answers methods that it does not know with 501.
_REFUSED = frozenset((403, 501))
_HOSTS = (None, "attacker.example", "127.0.0.1.attacker.example", "localhost.", "0.0.0.0", "[::1]", "2130706433")  # noqa: S104 - sent, not bound
_PAGES: tuple[Mapping[str, str], ...] = (
    {},
    {"Origin": "http://127.0.0.1:8000"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "same-site"},
)
_METHODS = ("POST", "OPTIONS")


def web_pages(_dice: random.Random, _count: int) -> Iterator[Attempt]:
    """Send every call with every host, page and credentials; only the world's own, of no page, get through."""
    root = random_root_credentials()
    settings = LocalWorldSettings()
    policies = RolePolicies(root)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        running_simulator(settings, policies, Containers()) as server,
        running_emulator(Path(folder), {}, root) as emulator,
    ):
        calls = {
            "emulator: a function is created": _calling(emulator.endpoint_url, "/2015-03-31/functions", {}),
            "emulator: tables are listed": _calling(
                emulator.endpoint_url, "/", {"X-Amz-Target": "DynamoDB_20120810.ListTables"}
            ),
            "emulator: it is reset": _calling(emulator.endpoint_url, "/_ministack/reset", {}),
            "simulator: clusters are listed": _calling(
                server.url, "/", {"X-Amz-Target": "AmazonEC2ContainerServiceV20141113.ListClusters"}
            ),
            "simulator: a control route": _calling(server.url, "/_relaunch/state", {}),
        }
        tries = product(calls.items(), _METHODS, _HOSTS, _PAGES, _keys(root))
        for (what, call), method, host, page, (key, credentials) in tries:
            headers = {**call.headers, **page, **({"Host": host} if host else {})}
            sent = replace(call, method=method, headers=headers)
            is_allowed = (method, host, page, credentials) == ("POST", None, {}, root)
            about = f"{what}, {method}, host {host or urlsplit(call.url).netloc}, {page or 'no page'}, {key}"
            yield attempt(about, partial(_send, sent, credentials, is_allowed=is_allowed))


def _keys(root: Credentials) -> list[tuple[str, Credentials | None]]:
    return [
        ("unsigned", None),
        ("MiniStack's root key", Credentials("test", "test")),
        ("twelve digits", Credentials(ACCOUNT, "x")),
        ("a guessed secret", Credentials(root.access_key_id, "guessed")),
        ("its own credentials", root),
    ]


def _calling(url: str, path: str, headers: Mapping[str, str]) -> Call:
    return Call(
        url + path, body=json.dumps({}).encode(), headers={"Content-Type": "application/x-amz-json-1.1", **headers}
    )


def _send(call: Call, credentials: Credentials | None, *, is_allowed: bool) -> str | None:
    answer = (call.sign(credentials) if credentials else call).send()
    allowing = [name for name in answer.headers if name.lower().startswith("access-control-")]
    if allowing:
        return f"was answered with {allowing[0]}"
    return (
        None if (answer.status not in _REFUSED) == is_allowed else f"was answered {answer.status}: {answer.body[:200]}"
    )
