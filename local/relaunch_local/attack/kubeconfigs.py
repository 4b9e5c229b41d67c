"""Kubeconfigs that nobody honest stores: from a secret, from Alibaba Cloud, or of whoever runs the command."""

import base64
import json
import random
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from relaunch.adapters.kubernetes.api.connection import tls_context
from relaunch.adapters.kubernetes.api.kubeconfig import KubeconfigError, read_kubeconfig
from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.bodies import mutate
from relaunch_local.kubernetes.certificates import CertificateAuthority

TOKEN = "c2VjcmV0LXRva2Vu"  # noqa: S105 - for nothing
# What would run a program, read a file, trust anyone or be somebody else ("kubeconfig (v1)", Kubernetes).
_OF_USER = {
    "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": ["/tmp/pwned"]},  # noqa: S108
    "auth-provider": {"name": "oidc"},
    "tokenFile": "/etc/passwd",
    "client-certificate": "/etc/passwd",
    "client-key": "/etc/passwd",
    "username": "root",
    "password": "root",
    "as": "system:admin",
    "as-groups": ["system:masters"],
    "as-uid": "0",
}
_OF_CLUSTER = {
    "insecure-skip-tls-verify": True,
    "certificate-authority": "/etc/passwd",
    "proxy-url": "http://evil.example",
    "tls-server-name": "evil.example",
}


def kubeconfigs(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Read hostile kubeconfigs: each is refused without a word of its secrets, or is one that trusts its CA alone."""
    for kind, asked in (("users", _OF_USER), ("clusters", _OF_CLUSTER)):
        for key, value in asked.items():
            document = _document()
            document[kind][0][kind[:-1]][key] = value
            yield attempt(f"{kind} with {key}", partial(_read_refused, json.dumps(document)))
    for what, text in _bombs():
        yield attempt(what, partial(_read, text))
    for number in range(count):
        text = json.dumps(mutate(_document(), dice), indent=dice.choice((None, 1)))
        if dice.random() < 0.5:
            text = _damage(text, dice)
        yield attempt(f"{number}: {text[:300]!a}", partial(_read, text))


def _document() -> dict[str, Any]:
    user = {"token": TOKEN, "client-certificate-data": _client()[0], "client-key-data": _client()[1]}
    cluster = {"server": "https://192.0.2.1:6443", "certificate-authority-data": _authority()}
    context = {"cluster": "ack", "user": "launcher", "namespace": "training"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "ack",
        "clusters": [{"name": "ack", "cluster": cluster}],
        "contexts": [{"name": "ack", "context": context}],
        "users": [{"name": "launcher", "user": user}],
    }


@cache
def _made() -> CertificateAuthority:
    return CertificateAuthority()


@cache
def _authority() -> str:
    return _encode(_made().certificate)


@cache
def _client() -> tuple[str, str]:
    issued = _made().issue_client("launcher")
    return _encode(issued.certificate), _encode(issued.key)


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _read(text: str) -> str | None:
    try:
        access = read_kubeconfig(text)
        tls_context(access)
    except KubeconfigError as error:
        is_secret = any(secret in str(error) for secret in (TOKEN, _client()[1]))
        return f"a secret is in {str(error)[:200]!a}" if is_secret else None
    is_secret = any(secret in repr(access) for secret in (TOKEN, "PRIVATE KEY"))
    is_safe = access.server.startswith("https://") and "BEGIN CERTIFICATE" in access.certificate_authority
    if is_secret or not is_safe:
        return f"was read as {access!r}"
    return None if access.token or access.client_key else "has nobody who signs in"


def _read_refused(text: str) -> str | None:
    try:
        read_kubeconfig(text)
    except KubeconfigError:
        return None
    return "was accepted"


def _bombs() -> Iterator[tuple[str, str]]:
    head = "apiVersion: v1\nkind: Config\ncurrent-context: ack\n"
    doubled = "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 26))
    ninefold = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    chain = "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 1_000))
    yield "merge keys that double 25 times", f"{head}a0: &a0 {{x: 1}}\n{doubled}"
    yield "aliases that grow ninefold", f"{head}a0: &a0 [x]\n{ninefold}"
    yield "aliases within aliases", f"{head}a0: &a0 [x]\n{chain}"
    yield "an alias of itself", f"{head}users: &users [*users]\n"
    yield "a number in base 60", f"{head}x: 1{':59' * 60_000}\n"
    yield "a fraction in base 60", f"{head}x: 1{':59' * 400}.5\n"
    for depth in (100, 100_000):
        yield f"{depth} nested lists", head + "x: " + "[" * depth
        yield f"{depth} nested mappings", head + "x: " + "{a: " * depth
    yield "a text of 900,000 characters", f'{head}x: "{"a" * 900_000}"'
    yield "a text of 90,000 escapes", head + 'x: "' + r"\x41" * 90_000 + '"'
    yield "more than a kubeconfig has", f'{head}x: "{"a" * 5_000_000}"'
    for tag in ("!!python/object/apply:os.system ['true']", "!!binary aGVsbG8=", "!!set {a}", "!include /etc/passwd"):
        yield tag, f"{head}users: {tag}\n"
    for odd in ("", "\x00", "\ud800", "\ufeff", "%YAML 9.9\n---\n", "---\n---\n", "- ", "{" * 9):
        yield f"{odd!a} before", odd + head


def _damage(text: str, dice: random.Random) -> str:
    for _ in range(dice.randint(1, 5)):
        place = dice.randrange(len(text) + 1)
        kind = dice.choice(("insert", "cut", "double"))
        if kind == "insert":
            text = text[:place] + dice.choice("[]{}:,&*!|>%@`\"'#?-<\n\t\\\x00\ud800") + text[place:]
        elif kind == "cut":
            text = text[:place] + text[place + dice.randint(1, 40) :]
        else:
            text = text[:place] + text[place : place + 60] + text[place:]
    return text
