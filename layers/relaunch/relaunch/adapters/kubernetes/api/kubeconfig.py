"""A strict reader of kubeconfigs: what it does not know, or what would run a program or trust anyone, is refused.

Source: "kubeconfig (v1)" of the Kubernetes reference. No message and no repr has anything of what is secret in it.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from relaunch.adapters.core_schema import PlainYamlError, read_plain
from relaunch.core.records import dataclass
from relaunch.ports import NotGrantedError

# Of its characters most are base64, which is scanned fast.
_MAX_LENGTH = 1_000_000
_FLATTEN = "put the content into the file (`kubectl config view --raw --flatten`)"
# A token of `kubectl create token` is valid for an hour unless it is asked otherwise (reference of kubectl), and the
# server may allow less than is asked for.
_SERVICE_ACCOUNT = (
    "put a token of a service account there: that of a Secret of type kubernetes.io/service-account-token, which does "
    "not expire, or `kubectl create token --duration=8760h`, of which the server may grant less"
)
_REFUSED_OF_CLUSTER = {
    "insecure-skip-tls-verify": "the server must prove who it is: give certificate-authority-data instead",
    "certificate-authority": f"files are not read: {_FLATTEN}",
    "proxy-url": "proxies are not supported",
    "tls-server-name": "the certificate must be for the host of `server`",
}
_REFUSED_OF_USER = {
    "exec": f"programs are not run: {_SERVICE_ACCOUNT}",
    "auth-provider": f"it needs a plug-in: {_SERVICE_ACCOUNT}",
    "username": "passwords are not supported: use a token or a client certificate",
    "password": "passwords are not supported: use a token or a client certificate",
    "tokenFile": f"files are not read: {_FLATTEN}",
    "client-certificate": f"files are not read: {_FLATTEN}",
    "client-key": f"files are not read: {_FLATTEN}",
    "as": "impersonation is not supported",
    "as-uid": "impersonation is not supported",
    "as-groups": "impersonation is not supported",
    "as-user-extra": "impersonation is not supported",
}
_KNOWN_OF_CLUSTER = frozenset({"server", "certificate-authority-data", "disable-compression", "extensions"})
_KNOWN_OF_USER = frozenset({"token", "client-certificate-data", "client-key-data", "extensions"})


class KubeconfigError(NotGrantedError):
    """The kubeconfig cannot be used; the message says where and why, and contains nothing secret."""

    def __init__(self, message: str) -> None:
        super().__init__(f"kubeconfig: {message}")


@dataclass(frozen=True)
class ClusterAccess:
    """Where a cluster's API is and who calls it, in PEM and text; `expires_at` is None if it is not known to expire.

    It has a token, or a client certificate with its key, or both.
    """

    server: str
    certificate_authority: str = field(repr=False)
    namespace: str = ""
    token: str = field(default="", repr=False)
    client_certificate: str = field(default="", repr=False)
    client_key: str = field(default="", repr=False)
    expires_at: datetime | None = None


def read_kubeconfig(text: str, context: str = "", expires_at: datetime | None = None) -> ClusterAccess:
    """Read a kubeconfig in YAML or JSON; `context` is a name in it, that of `current-context` if empty.

    Raises:
        KubeconfigError: it is malformed, lacks something, or asks for what is refused.
    """
    document = _parse(text)
    wanted = context or document.get("current-context")
    if not isinstance(wanted, str) or not wanted:
        raise KubeconfigError("there is no current-context: set it (`kubectl config use-context`)")
    chosen = _find(document, "context", wanted)
    cluster = _find(document, "cluster", _text(chosen, "cluster", f"context {wanted}"))
    user = _find(document, "user", _text(chosen, "user", f"context {wanted}"))
    _refuse(cluster, _REFUSED_OF_CLUSTER, _KNOWN_OF_CLUSTER, "cluster")
    _refuse(user, _REFUSED_OF_USER, _KNOWN_OF_USER, "user")
    return ClusterAccess(
        server=_server(cluster),
        certificate_authority=_pem(cluster, "certificate-authority-data", "the cluster"),
        namespace=_text(chosen, "namespace", f"context {wanted}") if chosen.get("namespace") else "",
        expires_at=expires_at,
        **_credentials(user),
    )


def _parse(text: str) -> Mapping[str, Any]:
    try:
        document = read_plain(text, _MAX_LENGTH)
    except PlainYamlError as error:
        raise KubeconfigError(str(error)) from None
    if not isinstance(document, dict) or document.get("kind", "Config") != "Config":
        raise KubeconfigError("it is not an object of kind Config")
    return document


def _find(document: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    entries = document.get(f"{kind}s")
    found: list[Mapping[str, Any]] = [
        each[kind]
        for each in (entries if isinstance(entries, list) else [])
        if isinstance(each, dict) and each.get("name") == name and isinstance(each.get(kind), dict)
    ]
    if len(found) != 1:
        raise KubeconfigError(f"{len(found) or 'no'} {kind}s are named {name!r}: one is needed")
    return found[0]


def _refuse(entry: Mapping[str, Any], refused: Mapping[str, str], known: frozenset[str], kind: str) -> None:
    for key, value in entry.items():
        # Written by tools though unset.
        if value in (None, "", False):
            continue
        if key in refused:
            raise KubeconfigError(f"`{key}` of the {kind} is refused: {refused[key]}")
        if key not in known:
            raise KubeconfigError(f"the {kind} has an unknown key: {str(key)[:60]!r}")


def _server(cluster: Mapping[str, Any]) -> str:
    server = _text(cluster, "server", "the cluster")
    if not _is_plain_https(server):
        raise KubeconfigError("`server` of the cluster must be https://host:port, with nothing secret in it")
    return server.rstrip("/")


def _is_plain_https(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_complete = parts.scheme == "https" and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port
        return False
    return is_complete and not any((parts.username, parts.password, parts.query, parts.fragment))


def _credentials(user: Mapping[str, Any]) -> dict[str, str]:
    token = _text(user, "token", "the user") if user.get("token") else ""
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise KubeconfigError("`token` of the user has characters that no token has, such as line ends")
    has_certificate = [bool(user.get(key)) for key in ("client-certificate-data", "client-key-data")]
    if not any(has_certificate):
        if not token:
            raise KubeconfigError("the user has neither `token` nor `client-certificate-data`")
        return {"token": token}
    if not all(has_certificate):
        raise KubeconfigError("`client-certificate-data` and `client-key-data` of the user belong together")
    return {
        "token": token,
        "client_certificate": _pem(user, "client-certificate-data", "the user"),
        "client_key": _pem(user, "client-key-data", "the user"),
    }


def _pem(entry: Mapping[str, Any], key: str, owner: str) -> str:
    try:
        decoded = base64.b64decode("".join(_text(entry, key, owner).split()), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        raise KubeconfigError(f"`{key}` of {owner} is not base64 of a PEM text") from None
    if "-----BEGIN " not in decoded:
        raise KubeconfigError(f"`{key}` of {owner} is not base64 of a PEM text")
    return decoded


def _text(entry: Mapping[str, Any], key: str, owner: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise KubeconfigError(f"{owner} has no `{key}`, or it is not a text")
    return value
