"""A function reads the certificates of authorities once, and trusts no server that they do not vouch for."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import SSLError

from benchmarks.certificates import server_context, write_certificate
from fakes.loopback import LoopbackHandler, serve_on_loopback
from relaunch.adapters.aws.certificates import SharedCertificates

_ONCE = Config(connect_timeout=5, read_timeout=5, retries={"total_max_attempts": 1})


class _Sqs(LoopbackHandler):
    def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
        self.read_body()
        self.respond(200, b'{"QueueUrl": "https://sqs/a"}', (("Content-Type", "application/x-amz-json-1.0"),))


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of which certificates were read."""
    files: list[str] = []
    load = ssl.SSLContext.load_verify_locations

    def note(self: ssl.SSLContext, cafile: Any = None, capath: Any = None, cadata: Any = None) -> None:
        files.append(str(cafile))
        load(self, cafile, capath, cadata)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", note)
    monkeypatch.setattr("relaunch.adapters.aws.certificates.getproxies", dict)
    return files


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    certificate, bundle = write_certificate(tmp_path_factory.mktemp("certificates"))
    with serve_on_loopback(_Sqs, server_context(certificate)) as url:
        yield url, bundle


def client(url: str) -> Any:
    session = botocore.session.Session()
    session.set_credentials("testing", "testing")
    create: Any = session.create_client
    return create("sqs", region_name="us-east-1", endpoint_url=url, config=_ONCE)


def test_certificates_are_read_once_for_all_clients(server: tuple[str, Path], loaded: list[str]) -> None:
    url, bundle = server
    certificates = SharedCertificates(str(bundle))

    for _ in range(2):
        sqs = certificates.share_with(client(url))
        assert sqs.get_queue_url(QueueName="a")["QueueUrl"] == "https://sqs/a"

    assert loaded == [str(bundle)]


def test_a_server_of_no_known_authority_is_not_trusted(server: tuple[str, Path], loaded: list[str]) -> None:
    with pytest.raises(SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        SharedCertificates(None).share_with(client(server[0])).get_queue_url(QueueName="a")


def test_behind_a_proxy_a_client_sends_as_botocore_does(
    server: tuple[str, Path], loaded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relaunch.adapters.aws.certificates.getproxies", lambda: {"https": "http://proxy"})
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(server[1]))

    SharedCertificates(None).share_with(client(server[0])).get_queue_url(QueueName="a")

    assert loaded == [str(server[1])]
