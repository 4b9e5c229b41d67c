"""Whom the server refuses, and that it does nothing for them."""

import socket
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from fakes.served_simulator import ROOT, Served, client
from fakes.unguarded import UnguardedRequests
from relaunch_local.attack.requests import Call
from relaunch_local.ecs import EcsServer
from relaunch_local.request_guard.credentials import Credentials


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"cluster": 7}'])
def test_a_malformed_body_is_refused(served: Served, body: bytes) -> None:
    headers = {"X-Amz-Target": "AmazonEC2ContainerServiceV20141113.ListTasks"}

    assert Call(f"{served.server.url}/", body=body, headers=headers).sign(ROOT, "ecs").send().status == 400


LIST_TASKS = {"X-Amz-Target": "AmazonEC2ContainerServiceV20141113.ListTasks"}
ATTACKS = {
    "unsigned": lambda call: call,
    "a wrong secret": lambda call: call.sign(Credentials("AKIALAUNCHER", "guessed"), "ecs"),
    "the emulator's usual key": lambda call: call.sign(Credentials("test", "test"), "ecs"),
    "twelve digits": lambda call: call.add(
        Authorization="AWS4-HMAC-SHA256 Credential=111122223333/20260101/r/s/aws4_request"
    ),
    "a foreign host": lambda call: call.add(Host="attacker.example").sign(ROOT, "ecs"),
    "a page": lambda call: call.sign(ROOT, "ecs").add(Origin="http://127.0.0.1:8000"),
    "a page without a name": lambda call: call.sign(ROOT, "ecs").add(Origin="null"),
    "a link of a page": lambda call: call.sign(ROOT, "ecs").add(Sec_Fetch_Site="cross-site"),
    "another body": lambda call: replace(call.sign(ROOT, "ecs"), body=call.body + b" "),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_guarded_server_does_nothing_for_whom_an_unguarded_one_does_everything(
    served: Served, attack: Callable[[Call], Call]
) -> None:
    control = attack(served.call("throttling", {"enabled": False}))
    listing = attack(Call(f"{served.server.url}/", body=b"{}", headers=LIST_TASKS))
    query = attack(Call(f"{served.server.url}/", body=b"Action=DescribeInstances&Version=2016-11-15"))
    before = len(served.simulator.requests)

    answers = [call.send() for call in (control, listing, query)]

    assert [answer.status for answer in answers] == [403, 403, 403]
    assert not any(name.lower().startswith("access-control") for answer in answers for name in answer.headers)
    assert served.simulator.limits.enabled
    assert len(served.simulator.requests) == before

    unguarded = EcsServer(served.simulator, UnguardedRequests({}.get))
    unguarded.start()
    try:
        assert replace(control, url=control.url.replace(served.server.url, unguarded.url)).send().status == 200
    finally:
        unguarded._server.shutdown()
        unguarded._server.server_close()
    assert not served.simulator.limits.enabled


def test_a_preflight_is_refused_and_allows_nothing(served: Served) -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}

    answer = (
        Call(f"{served.server.url}/_relaunch/state", "OPTIONS", headers=asked).add(Origin="http://a.example").send()
    )

    assert answer.status in (403, 501)
    assert not any(name.lower().startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize("framing", ["Content-Length: 4096", "Transfer-Encoding: chunked"])
def test_a_body_that_is_refused_is_not_taken_for_a_request(served: Served, framing: str) -> None:
    hidden = served.call("throttling", {"enabled": False}).sign(ROOT, "ecs")
    fields = [f"{name}: {value}" for name, value in hidden.headers.items()]
    head = ["POST /_relaunch/throttling HTTP/1.1", *fields, f"Content-Length: {len(hidden.body)}", "", ""]
    page = ["POST / HTTP/1.1", f"Host: {urlsplit(served.server.url).netloc}", "Origin: null", framing, "", ""]

    with socket.create_connection(("127.0.0.1", urlsplit(served.server.url).port), timeout=60) as connection:
        connection.sendall("\r\n".join([*page[:-1], *head]).encode() + hidden.body)
        connection.shutdown(socket.SHUT_WR)
        answers = b"".join(iter(lambda: connection.recv(65_536), b""))

    assert answers.count(b"HTTP/1.1 ") == 1
    assert served.simulator.limits.enabled
    assert hidden.send().status == 200, "what was hidden is a request that would be taken"


def test_a_body_in_chunks_is_refused_and_said_to_be(served: Served) -> None:
    call = Call(f"{served.server.url}/", headers={"Transfer-Encoding": "chunked"}).sign(ROOT, "ecs")

    answer = call.send()

    assert answer.status == 403
    assert "Content-Length" in answer.body


@pytest.mark.parametrize("length", ["-1", "one", "1e3"])
def test_a_length_that_is_none_is_refused(served: Served, length: str) -> None:
    call = Call(f"{served.server.url}/", body=b"{}", headers={"Content-Length": length, **LIST_TASKS}).sign(ROOT, "ecs")

    assert call.send().status == 403


def test_boto3_reads_why_it_is_refused(served: Served) -> None:
    served.simulator.limits.enabled = False
    for service in ("ecs", "ec2"):
        nobody = client(service, served.server.url, "AKIANOBODY")
        with pytest.raises(ClientError, match=r"InvalidClientTokenId.*`make local` prints"):
            nobody.list_clusters() if service == "ecs" else nobody.describe_instances()
