import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.webhook import sign
from relaunch.adapters.github.signature import (
    MAX_AGE_SECONDS,
    REFRESH_SECONDS,
    NoSecretError,
    SecretRing,
    SecretUnavailableError,
    is_signed_by,
    read_digest,
)
from relaunch.adapters.github.webhook_secrets import MalformedSecretError

HOURS = 12 * 3600.0


class Stages:
    """Secrets Manager's stages, how often each was read, and whether it answers."""

    def __init__(self, **secrets: str) -> None:
        self.secrets = secrets
        self.stored_at = 1_000.0
        self.reads: list[str] = []
        self.is_down = False
        self.at = 1_000.0
        self.ring = SecretRing(self.read, lambda: self.at, HOURS)

    def read(self, stage: str) -> tuple[str, float] | None:
        self.reads.append(stage)
        if self.is_down:
            raise SecretUnavailableError("no answer")
        return (self.secrets[stage], self.stored_at) if stage in self.secrets else None

    def store(self, **scopes: tuple[str, ...]) -> None:
        """Store JSON: for each scope, where `_` stands for `/`, the secret, or with the previous one and when."""
        names = ("secret", "previous", "replaced_at")
        entries = {(name.replace("_", "/")): dict(zip(names, entry, strict=False)) for name, entry in scopes.items()}
        self.secrets["AWSCURRENT"] = json.dumps({"scopes": entries})

    def has_signed(self, secret: str, body: bytes = b"{}", scope: str = "/") -> bool:
        digest = read_digest(sign(body, secret))
        assert digest is not None
        return self.ring.has_signed(scope, body, digest)


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
    stages.at += REFRESH_SECONDS
    assert not stages.has_signed("forged")
    assert len(stages.reads) == 6


def test_a_secret_that_was_taken_back_opens_nothing_after_a_minute() -> None:
    stages = Stages(AWSCURRENT="leaked")
    assert stages.has_signed("leaked")

    stages.secrets = {"AWSCURRENT": "new", "AWSPREVIOUS": "other"}
    stages.at += REFRESH_SECONDS - 1
    assert stages.has_signed("leaked")
    stages.at += 1

    assert not stages.has_signed("leaked")


def test_while_secrets_manager_does_not_answer_known_secrets_are_good_for_ten_minutes() -> None:
    stages = Stages(AWSCURRENT="secret")
    assert stages.has_signed("secret")
    stages.is_down = True

    for _ in range(9):
        stages.at += REFRESH_SECONDS
        assert stages.has_signed("secret")
        assert stages.has_signed("secret")
    assert len(stages.reads) == 10
    stages.at += REFRESH_SECONDS
    assert stages.at - 1_000.0 == MAX_AGE_SECONDS
    with pytest.raises(SecretUnavailableError):
        stages.has_signed("secret")

    stages.is_down = False
    assert stages.has_signed("secret")


def test_nothing_is_called_forged_that_could_be_signed_with_a_secret_that_cannot_be_read() -> None:
    stages = Stages(AWSCURRENT="old")
    assert stages.has_signed("old")
    stages.is_down = True

    with pytest.raises(SecretUnavailableError):
        stages.has_signed("new")


def test_the_previous_secret_ends_hours_after_its_successor_was_stored() -> None:
    stages = Stages(AWSCURRENT="new", AWSPREVIOUS="old")

    for at, is_accepted in ((0.0, True), (HOURS - 1, True), (HOURS, False), (1e9, False)):
        stages.at = stages.stored_at + at
        assert stages.has_signed("old") is is_accepted
        assert stages.has_signed("new")


def test_the_previous_secret_ends_on_time_though_it_was_read_before() -> None:
    stages = Stages(AWSCURRENT="new", AWSPREVIOUS="old")
    stages.at = stages.stored_at + HOURS - 1
    assert stages.has_signed("old")

    stages.at += 1

    assert not stages.has_signed("old")


def test_a_previous_secret_that_has_ended_is_not_read() -> None:
    stages = Stages(AWSCURRENT="new", AWSPREVIOUS="old")
    stages.at = stages.stored_at + HOURS

    assert not stages.has_signed("old")
    assert "AWSPREVIOUS" not in stages.reads


def test_without_the_time_of_its_storage_the_previous_secret_opens_nothing() -> None:
    stages = Stages(AWSCURRENT="new", AWSPREVIOUS="old")
    stages.stored_at, stages.at = 0.0, 1e9

    assert not stages.has_signed("old")


# --- scopes


def test_a_scope_is_signed_for_with_its_own_secret_only() -> None:
    stages = Stages()
    stages.store(_=("default",), acme=("owner",), acme_vision=("repository",))

    secrets = {"/": "default", "acme": "owner", "acme/vision": "repository"}
    for scope, own in secrets.items():
        for secret in secrets.values():
            assert stages.has_signed(secret, scope=scope) is (secret == own)
    assert not any(stages.has_signed(secret, scope="acme/other") for secret in secrets.values())


def test_the_secret_of_a_scope_and_its_previous_one_say_themselves_how_long_they_hold() -> None:
    stages = Stages(AWSPREVIOUS="of-the-stage")
    stages.store(_=("default", "old-default", "1970-01-01T02:00:00+02:00"), acme=("new", "old", "1970-01-01T00:15:00Z"))

    assert stages.has_signed("old", scope="acme")
    assert stages.has_signed("old-default")
    assert not stages.has_signed("of-the-stage")
    stages.at = HOURS
    assert not stages.has_signed("old-default")
    assert stages.has_signed("old", scope="acme")
    stages.at = 15 * 60 + HOURS
    assert not stages.has_signed("old", scope="acme")
    assert stages.has_signed("new", scope="acme")
    assert set(stages.reads) == {"AWSCURRENT"}


def test_a_scope_that_was_added_after_the_start_is_found_by_its_first_delivery() -> None:
    stages = Stages(AWSCURRENT="default")
    assert stages.has_signed("default")
    assert not stages.has_signed("repository", scope="acme/vision")

    stages.store(_=("default",), acme_vision=("repository",))
    stages.at += REFRESH_SECONDS

    assert stages.has_signed("repository", scope="acme/vision")


def test_the_json_from_which_somebody_went_back_to_a_text_opens_nothing() -> None:
    stages = Stages()
    stages.store(_=("default",))
    document = stages.secrets["AWSCURRENT"]
    stages.secrets = {"AWSCURRENT": "text", "AWSPREVIOUS": document}

    assert stages.has_signed("text")
    assert not stages.has_signed(document)
    assert not stages.has_signed("default")


def test_what_cannot_be_parsed_ends_what_was_known_before() -> None:
    stages = Stages(AWSCURRENT="secret")
    assert stages.has_signed("secret")
    stages.secrets["AWSCURRENT"] = '{"scopes": '
    stages.at += REFRESH_SECONDS

    for _ in range(2):
        with pytest.raises(MalformedSecretError):
            stages.has_signed("secret")
    stages.secrets["AWSCURRENT"] = "secret"
    assert stages.has_signed("secret")


def test_json_without_a_scope_is_no_secret() -> None:
    stages = Stages()
    stages.store()

    with pytest.raises(NoSecretError):
        stages.has_signed("")


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
