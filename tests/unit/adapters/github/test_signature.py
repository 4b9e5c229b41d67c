import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.webhook import sign
from relaunch.adapters.github.signature import (
    MAX_AGE_SECONDS,
    REREAD_SECONDS,
    NoSecretError,
    SecretRing,
    is_signed_by,
    read_digest,
)


class Stages:
    """Secrets Manager's stages, and how often each was read."""

    def __init__(self, **secrets: str) -> None:
        self.secrets = secrets
        self.reads: list[str] = []
        self.at = 1_000.0
        self.ring = SecretRing(self.read, lambda: self.at)

    def read(self, stage: str) -> str | None:
        self.reads.append(stage)
        return self.secrets.get(stage)

    def has_signed(self, secret: str, body: bytes = b"{}") -> bool:
        digest = read_digest(sign(body, secret))
        assert digest is not None
        return self.ring.has_signed(body, digest)


def test_githubs_own_example_is_verified() -> None:
    digest = read_digest("sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")

    assert digest is not None
    assert is_signed_by([b"It's a Secret to Everybody"], b"Hello, World!", digest)
    assert not is_signed_by([b"It's a Secret to Everybody"], b"Hello, World?", digest)


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(None, id="missing"),
        pytest.param("", id="empty"),
        pytest.param("757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", id="without-prefix"),
        pytest.param("sha1=7ff4a1b9b1d3e3dcd2ef86bc3f2f1f3ffefc9c4f", id="sha1"),
        pytest.param("sha256=", id="prefix-only"),
        pytest.param("sha256=" + "a" * 63, id="short"),
        pytest.param("sha256=" + "a" * 65, id="long"),
        pytest.param("sha256=" + "g" * 64, id="not-hexadecimal"),
        pytest.param("sha256=" + "é" * 64, id="not-ascii"),
        pytest.param("sha256=" + "٣" * 64, id="digits-of-another-script"),
        pytest.param("sha256=" + "a" * 64 + ", sha256=" + "b" * 64, id="two-of-them"),
    ],
)
def test_a_malformed_signature_is_none(header: str | None) -> None:
    assert read_digest(header) is None


def test_the_previous_secret_is_not_read_while_the_current_one_fits() -> None:
    stages = Stages(AWSCURRENT="new", AWSPREVIOUS="old")

    assert all(stages.has_signed("new") for _ in range(3))
    assert stages.reads == ["AWSCURRENT"]


def test_both_secrets_are_accepted_while_one_is_being_changed() -> None:
    stages = Stages(AWSCURRENT="new", AWSPREVIOUS="old")

    assert stages.has_signed("old")
    assert stages.has_signed("new")
    assert not stages.has_signed("older")


def test_there_need_not_be_a_previous_secret() -> None:
    stages = Stages(AWSCURRENT="new")

    assert not stages.has_signed("old")
    assert stages.has_signed("new")


def test_a_secret_stored_after_the_start_is_found_by_the_first_delivery_signed_with_it() -> None:
    stages = Stages(AWSCURRENT="old")
    assert stages.has_signed("old")

    stages.secrets = {"AWSCURRENT": "new", "AWSPREVIOUS": "old"}

    assert stages.has_signed("new")
    assert stages.has_signed("old")


def test_wrong_signatures_make_us_read_the_secrets_once_a_minute_only() -> None:
    stages = Stages(AWSCURRENT="secret")

    for _ in range(20):
        assert not stages.has_signed("forged")
    assert stages.reads == ["AWSCURRENT", "AWSCURRENT", "AWSPREVIOUS"]
    stages.at += REREAD_SECONDS
    assert not stages.has_signed("forged")
    assert len(stages.reads) == 5


def test_a_secret_that_was_taken_back_opens_nothing_after_ten_minutes() -> None:
    stages = Stages(AWSCURRENT="leaked")
    assert stages.has_signed("leaked")

    stages.secrets = {"AWSCURRENT": "new", "AWSPREVIOUS": "other"}
    stages.at += MAX_AGE_SECONDS

    assert not stages.has_signed("leaked")


@pytest.mark.parametrize(
    "secrets",
    [
        pytest.param({}, id="none"),
        pytest.param({"AWSCURRENT": ""}, id="empty"),
        pytest.param({"AWSCURRENT": "\n"}, id="newline"),
        pytest.param({"AWSPREVIOUS": "old"}, id="previous-only"),
    ],
)
def test_without_a_secret_nothing_is_verified(secrets: dict[str, str]) -> None:
    stages = Stages(**secrets)

    for forged in ("", "\n", "old"):
        with pytest.raises(NoSecretError):
            stages.has_signed(forged)


def test_without_a_current_secret_the_previous_one_opens_nothing() -> None:
    stages = Stages(AWSCURRENT="old")
    assert stages.has_signed("old")

    stages.secrets = {"AWSPREVIOUS": "older"}

    for secret in ("older", "old"):
        with pytest.raises(NoSecretError):
            stages.has_signed(secret)


def test_an_empty_previous_secret_opens_nothing() -> None:
    assert not Stages(AWSCURRENT="new", AWSPREVIOUS="").has_signed("")


def test_the_newline_at_the_end_of_a_file_is_no_part_of_the_secret() -> None:
    assert Stages(AWSCURRENT="secret\n").has_signed("secret")


@given(st.binary(max_size=200), st.text(max_size=100))
def test_no_header_but_the_right_one_is_accepted(body: bytes, header: str) -> None:
    digest = read_digest(header)

    assert digest is None or not is_signed_by([b"secret"], body, digest)
