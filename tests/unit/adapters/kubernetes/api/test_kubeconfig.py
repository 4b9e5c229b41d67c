"""The kubeconfigs that are read, and those that are refused with the reason."""

import base64
from copy import deepcopy
from typing import Any

import pytest
import yaml

from relaunch.adapters.kubernetes.api.kubeconfig import KubeconfigError, read_kubeconfig

CA = "-----BEGIN CERTIFICATE-----\nauthority\n-----END CERTIFICATE-----\n"
SECRET = "c2VjcmV0LXZhbHVl"


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


VALID: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "ack",
    "preferences": {},
    "contexts": [
        {"name": "ack", "context": {"cluster": "kubernetes", "user": "launcher"}},
        {"name": "other", "context": {"cluster": "kubernetes", "user": "certified", "namespace": "training"}},
    ],
    "clusters": [
        {
            "name": "kubernetes",
            "cluster": {
                "server": "https://192.0.2.1:6443/",
                "certificate-authority-data": encode(CA),
                "insecure-skip-tls-verify": False,
            },
        }
    ],
    "users": [
        {"name": "launcher", "user": {"token": SECRET}},
        {
            "name": "certified",
            "user": {
                "client-certificate-data": encode(CA),
                "client-key-data": encode("-----BEGIN PRIVATE KEY-----\nkey\n-----END PRIVATE KEY-----\n"),
            },
        },
    ],
}


# Each line doubles the mapping of the line before.
MERGED = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 26))


def text(**changes: Any) -> str:
    """The valid kubeconfig with changes to its cluster and its first user."""
    document = deepcopy(VALID)
    for kind in ("cluster", "user"):
        document[f"{kind}s"][0][kind] |= changes.pop(kind, {})
    return yaml.safe_dump(document | changes)


def test_reads_the_current_context_with_a_token() -> None:
    access = read_kubeconfig(text())

    assert (access.server, access.token, access.namespace) == ("https://192.0.2.1:6443", SECRET, "")
    assert access.certificate_authority == CA
    assert (access.client_certificate, access.client_key) == ("", "")


def test_reads_another_context_with_a_client_certificate() -> None:
    access = read_kubeconfig(text(), "other")

    assert (access.namespace, access.token, access.client_certificate) == ("training", "", CA)
    assert "PRIVATE KEY" in access.client_key


@pytest.mark.parametrize("context", ["ack", "other"])
def test_nothing_secret_is_in_the_repr(context: str) -> None:
    shown = repr(read_kubeconfig(text(), context))

    assert "192.0.2.1" in shown
    assert SECRET not in shown
    assert "KEY" not in shown
    assert "BEGIN" not in shown


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("exec", {"command": "aws"}, "programs are not run"),
        ("auth-provider", {"name": "oidc"}, "it needs a plug-in"),
        ("username", "root", "passwords are not supported"),
        ("password", SECRET, "passwords are not supported"),
        ("tokenFile", "/var/run/token", "files are not read"),
        ("client-certificate", "/c.pem", "files are not read"),
        ("client-key", "/k.pem", "files are not read"),
        ("as", "admin", "impersonation is not supported"),
        ("as-groups", ["system:masters"], "impersonation is not supported"),
        ("tokken", SECRET, "the user has an unknown key: 'tokken'"),
        ("token", f"{SECRET}\nX-Forged: 1", "characters that no token has"),
        ("token", 7, "has no `token`, or it is not a text"),
        ("client-key-data", encode(CA), "belong together"),
        ("token", "", "neither `token` nor"),
    ],
)
def test_a_user_that_is_refused(key: str, value: object, reason: str) -> None:
    with pytest.raises(KubeconfigError, match=reason) as caught:
        read_kubeconfig(text(user={key: value}))

    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("insecure-skip-tls-verify", True, "the server must prove who it is"),
        ("certificate-authority", "/ca.pem", "kubectl config view --raw --flatten"),
        ("proxy-url", "http://proxy", "proxies are not supported"),
        ("tls-server-name", "kubernetes", "the certificate must be for the host"),
        ("sever", "x", "the cluster has an unknown key: 'sever'"),
        ("certificate-authority-data", "", "the cluster has no `certificate-authority-data`"),
        ("certificate-authority-data", "%%%", "is not base64 of a PEM text"),
        ("certificate-authority-data", encode("no certificate"), "is not base64 of a PEM text"),
        ("server", "http://192.0.2.1:6443", "must be https://host:port"),
        ("server", "https://user:pass@192.0.2.1:6443", "must be https://host:port"),
        ("server", "https://[::1", "must be https://host:port"),
        ("server", "https://192.0.2.1:99999", "must be https://host:port"),
    ],
)
def test_a_cluster_that_is_refused(key: str, value: object, reason: str) -> None:
    with pytest.raises(KubeconfigError, match=reason):
        read_kubeconfig(text(cluster={key: value}))


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (f"token: {SECRET}: [", "it is not valid YAML"),
        ("- a list", "it is not an object of kind Config"),
        ("kind: Secret", "it is not an object of kind Config"),
        ("kind: Config", "there is no current-context"),
        (text(contexts=[]), "no contexts are named 'ack'"),
        (text(contexts=VALID["contexts"] * 2), "2 contexts are named 'ack'"),
        (text(users=None), "no users are named 'launcher'"),
        (text(contexts=[{"name": "ack", "context": {"user": "launcher"}}]), "context ack has no `cluster`"),
        ("#" * 1_000_001, "it is longer than 1,000,000 characters"),
        ("!!python/object/apply:os.system ['true']", "it has tags"),
        ("a: &a {x: 1}\nb: {<<: *a}", "merge keys (.*) are not supported: repeat the keys"),
        (MERGED, "merge keys (.*) are not supported"),
        ("a: &a [*a]", "anchors and aliases expand without end"),
        ("a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)), "without end"),
        (f"token: {SECRET}\ntoken: {SECRET}", "a key twice in one mapping"),
        ("[a]: b", "a key that is no single word"),
        ("a: !!bool 7", "a tag of another kind"),
        ("a: !!int x", "a number that is none"),
        ("a: " + "9" * 5_000, "is too long"),
        ("a: [" + "b," * 30_000 + "]", "too many values"),
        (f'a: "\\U00110000 {SECRET}"', "it is not valid YAML"),
        ("", "it is not an object of kind Config"),
    ],
    ids=range(22),
)
def test_a_document_that_is_refused(document: str, reason: str) -> None:
    with pytest.raises(KubeconfigError, match=reason) as caught:
        read_kubeconfig(document)

    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("value", ["1:30:30" + ":30" * 400 + ".5", "on", "0x7f", "2026-99-99", "~", "1e999", "True"])
def test_what_is_no_text_in_another_version_of_yaml_harms_nothing(value: str) -> None:
    assert read_kubeconfig(f"{text()}\nof-a-tool: {value}\n").token == SECRET
