"""Endpoints of Standard Webhooks."""

import base64

import pytest

from fakes.builders import NOW
from fakes.notice_receivers import KEY, SECRET, ReceiverServices, is_signed
from relaunch.adapters.notices.standard_webhook import read_secret, sign
from unit.adapters.notices.conftest import make_notice, make_receiver


def test_a_notice_is_signed_and_has_the_same_id_when_it_comes_again(services: ReceiverServices) -> None:
    receiver = make_receiver(services, "webhook")
    for _ in range(2):
        receiver.deliver(make_notice(), "")

    first, second = services.requests
    assert is_signed(first)
    assert is_signed(second)
    assert not is_signed(first, b"another key")
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == "resnet-1f2e3d4c:3:failed"
    assert first.headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    assert first.target == "/relaunch?key=secretkey"
    assert first.document["type"] == "relaunch.job.failed"
    assert first.document["data"]["event"]["sequence"] == 3
    assert first.body == second.body


def test_the_signature_is_that_of_the_specification() -> None:
    # The example of "Signature scheme" in the libraries' own tests.
    key = read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'

    assert sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)["webhook-signature"] == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "secret",
        SECRET.removeprefix("whsec_"),
        "whsec_!!",
        f"whsec_{base64.b64encode(b'x' * 65).decode()}",
    ],
)
def test_what_is_no_secret_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(ValueError, match="24 to 64 bytes") as error:
        read_secret(secret)

    assert len(secret) < 10 or secret not in str(error.value)
    assert read_secret(SECRET) == KEY
