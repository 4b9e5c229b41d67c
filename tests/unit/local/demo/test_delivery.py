from relaunch.adapters.github.signature import is_signed_by, read_digest
from relaunch_local.demo.delivery import sign_push


def test_a_push_is_signed_over_the_bytes_that_are_sent() -> None:
    delivery = sign_push("secret")
    digest = read_digest(delivery.headers["X-Hub-Signature-256"])

    assert digest is not None
    assert is_signed_by([b"secret"], delivery.body, digest)
    assert not is_signed_by([b"another"], delivery.body, digest)


def test_every_delivery_has_an_id_of_its_own() -> None:
    first, second = sign_push("secret"), sign_push("secret")

    assert first.body == second.body
    assert first.headers["X-GitHub-Delivery"] != second.headers["X-GitHub-Delivery"]
