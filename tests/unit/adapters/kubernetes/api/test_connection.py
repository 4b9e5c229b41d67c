"""Credentials are fetched when they are needed, and TLS trusts the cluster's CA alone."""

import ssl
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.connection import Connection, tls_context
from relaunch.adapters.kubernetes.api.kubeconfig import ClusterAccess, KubeconfigError
from relaunch.ports import TransientError
from relaunch_local.kubernetes.certificates import CertificateAuthority

VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.2"}


def test_credentials_are_fetched_at_the_first_request_and_kept(client: KubernetesClient, server) -> None:
    assert server.fetched == 0
    server.answer(200, VERSION)
    server.answer(200, VERSION)

    client.version()
    client.version()

    assert server.fetched == 1


@pytest.mark.parametrize(("seconds_left", "fetched"), [(61, 1), (60, 2), (-5, 2)])
def test_credentials_are_replaced_a_minute_before_they_expire(client, server, seconds_left: int, fetched: int) -> None:
    server.expires_at = server.now + timedelta(seconds=900)
    server.answer(200, VERSION)
    server.answer(200, VERSION)
    client.version()
    server.now = server.expires_at - timedelta(seconds=seconds_left)
    server.expires_at = server.now + timedelta(seconds=900)

    client.version()

    assert server.fetched == fetched


def test_an_error_while_credentials_are_fetched_is_that_error_and_the_next_request_tries_again(server) -> None:
    outcomes = [TransientError("signing in: throttled"), server.fetch()]

    def fetch() -> ClusterAccess:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    connection = Connection(fetch)
    with pytest.raises(TransientError, match="signing in"):
        _ = connection.http

    assert connection.http.base_url == "https://192.0.2.1:6443"


@pytest.mark.parametrize(("given", "of_context", "used"), [("a", "b", "a"), ("", "b", "b"), ("", "", "default")])
def test_the_namespace_is_the_given_one_or_that_of_the_kubeconfig(authority, given, of_context, used) -> None:
    access = ClusterAccess("https://192.0.2.1", authority.certificate, namespace=of_context, token="t")

    assert Connection(lambda: access, given).namespace == used


def test_a_closed_connection_opens_again_with_the_same_credentials(client: KubernetesClient, server) -> None:
    client.close()
    server.answer(200, VERSION)
    client.version()
    client.close()
    server.answer(200, VERSION)

    client.version()

    assert server.fetched == 1


class Api(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.peers.append(self.connection.getpeercert())  # type: ignore[attr-defined]
        content = b'{"major": "1", "minor": "36"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None: ...


class Quiet(HTTPServer):
    def handle_error(self, *_: object) -> None: ...


@pytest.fixture
def tls_server(authority: CertificateAuthority, tmp_path: Path):
    """A server that asks for a client certificate of the authority."""
    certificate = authority.issue_server()
    (tmp_path / "chain.pem").write_text(certificate.certificate + certificate.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "chain.pem")
    context.load_verify_locations(cadata=authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    server = Quiet(("127.0.0.1", 0), Api)
    server.peers = []  # type: ignore[attr-defined]
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def access_to(server: HTTPServer, ca: str, authority: CertificateAuthority) -> ClusterAccess:
    user = authority.issue_client("launcher")
    url = f"https://127.0.0.1:{server.server_address[1]}"
    return ClusterAccess(url, ca, client_certificate=user.certificate, client_key=user.key)


def test_a_client_certificate_is_shown_to_a_server_of_the_cluster(tls_server, authority) -> None:
    access = access_to(tls_server, authority.certificate, authority)
    client = KubernetesClient(Connection(lambda: access))

    assert client.version().minor == 36
    client.close()

    assert tls_server.peers[0]["subject"] == ((("commonName", "launcher"),),)


def test_a_server_of_another_authority_is_not_trusted(tls_server, authority) -> None:
    access = access_to(tls_server, CertificateAuthority().certificate, authority)
    client = KubernetesClient(Connection(lambda: access))

    with pytest.raises(TransientError, match="CERTIFICATE_VERIFY_FAILED"):
        client.version()

    assert tls_server.peers == []


def test_only_the_clusters_authority_is_trusted_and_hosts_are_checked(authority) -> None:
    context = tls_context(ClusterAccess("https://192.0.2.1", authority.certificate, token="t"))

    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert [each["subject"] for each in context.get_ca_certs()] == [((("commonName", "relaunch-local-ca"),),)]


@pytest.mark.parametrize("broken", ["certificate_authority", "client_certificate", "client_key"])
def test_a_malformed_certificate_or_key_is_refused_without_quoting_it(authority, broken: str) -> None:
    user = authority.issue_client("launcher")
    parts = {
        "certificate_authority": authority.certificate,
        "client_certificate": user.certificate,
        "client_key": user.key,
        broken: "-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----\n",
    }

    with pytest.raises(KubeconfigError, match="malformed") as caught:
        tls_context(ClusterAccess("https://192.0.2.1", **parts))

    assert caught.value.__cause__ is None
    assert "c2VjcmV0" not in str(caught.value)


def test_a_key_of_another_certificate_is_refused(authority) -> None:
    one, other = authority.issue_client("one"), authority.issue_client("other")

    with pytest.raises(KubeconfigError, match="belong together"):
        tls_context(
            ClusterAccess(
                "https://192.0.2.1",
                authority.certificate,
                client_certificate=one.certificate,
                client_key=other.key,
            )
        )


def test_keys_reach_openssl_without_memory_files_too(authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.memfd_create")
    user = authority.issue_client("launcher")

    assert tls_context(
        ClusterAccess(
            "https://192.0.2.1", authority.certificate, client_certificate=user.certificate, client_key=user.key
        )
    )
