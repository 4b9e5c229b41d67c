import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.json_values import JSON
from fakes.webhook import EVENTS, load_event
from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.core.triggers.events import BusEvent, GithubEvent, ImagePushed, ObjectCreated, ScheduledTime
from relaunch.core.triggers.matching import IgnoredEvent
from relaunch.ports import PermanentError, TransientError

KEY = "images/été 2026/shard+07.manifest"
ETAG = "6f5902ac237024bdd0c176cb93063dc4"
VERSION_ID = "Qw3zV1m4TtW0b8JkYv2hS5rE7nLxUa9P"
UPLOAD: dict[str, Any] = load_event("aws.s3.object-created")
NOTIFICATION: dict[str, Any] = load_event("s3.notification")
IMAGE: dict[str, Any] = load_event("aws.ecr.image-action")


def upload(**changes: Any) -> ObjectCreated:
    detail = {**UPLOAD["detail"], "object": {**UPLOAD["detail"]["object"], **changes}}
    (event,) = parse_intake_message({**UPLOAD, "detail": detail})
    assert isinstance(event, ObjectCreated)
    return event


def notified(**changes: Any) -> ObjectCreated:
    record = NOTIFICATION["Records"][0]
    created = {**record["s3"]["object"], **changes}
    (event,) = parse_intake_message({"Records": [{**record, "s3": {**record["s3"], "object": created}}]})
    assert isinstance(event, ObjectCreated)
    return event


@pytest.mark.parametrize("path", sorted(EVENTS.glob("sqs.intake.*.json")), ids=lambda path: path.stem)
def test_the_sample_batches_of_the_intake_queue_carry_readable_messages(path: Path) -> None:
    (record,) = json.loads(path.read_text(encoding="utf-8"))["Records"]

    (event,) = parse_intake_message(record["body"])
    assert isinstance(event, GithubEvent | ObjectCreated | ImagePushed | BusEvent | ScheduledTime)
    assert record["md5OfBody"] == hashlib.md5(record["body"].encode(), usedforsecurity=False).hexdigest()


def test_a_delivery_that_the_webhook_of_a_newer_release_queued_is_read_later() -> None:
    message = load_event("sqs.intake.github-push")["Records"][0]["body"].replace('"format":1', '"format":2')
    with pytest.raises(TransientError, match="the message has format 2, and this release reads 1: a newer release"):
        parse_intake_message(message)


@pytest.mark.parametrize(
    "number", ["0", "-1", "1000", str(2**63), "1" + 200 * "0", "2.5", "true", "null", '"2"', "[2]"]
)
def test_a_delivery_of_a_format_that_no_release_can_have_is_refused(number: str) -> None:
    message = load_event("sqs.intake.github-push")["Records"][0]["body"].replace('"format":1', f'"format":{number}')
    with pytest.raises(PermanentError, match="no release sends messages of format"):
        parse_intake_message(message)


def test_an_upload_told_by_eventbridge_is_read() -> None:
    identity = f"s3:acme-datasets:sequencer=6909A2FC3B1E5D70:{KEY}"

    assert parse_intake_message(json.dumps(UPLOAD)) == (
        ObjectCreated(identity, "acme-datasets", KEY, VERSION_ID, ETAG, 48213),
    )


def test_both_forms_of_one_uploads_news_are_the_same_event() -> None:
    assert parse_intake_message(UPLOAD) == parse_intake_message(NOTIFICATION)


@pytest.mark.parametrize(
    ("encoded", "key"),
    [
        ("red+flower.jpg", "red flower.jpg"),
        ("a%2Bb", "a+b"),
        ("100%25", "100%"),
        ("%E6%97%A5", "日"),
        ("in%2Fa", "in/a"),
    ],
)
def test_the_keys_of_notifications_are_decoded_and_those_of_eventbridge_are_not(encoded: str, key: str) -> None:
    assert notified(key=encoded).key == key
    assert upload(key=encoded).key == encoded


@given(st.text(min_size=1, max_size=50))
def test_any_key_gives_both_forms_the_same_identity(key: str) -> None:
    encoded = quote_plus(key, safe="/")  # as S3 does

    assert notified(key=encoded) == upload(key=key)


@pytest.mark.parametrize("content", [{}, {"etag": "0" * 32, "size": 9}], ids=["same-content", "other-content"])
def test_another_write_of_the_same_key_is_another_event(content: dict[str, Any]) -> None:
    again = {"sequencer": "006909A2FC3B1E5D71", **content}

    assert upload(**again).identity == notified(**again).identity != upload().identity


def test_the_sequencers_of_both_forms_may_be_written_differently() -> None:
    assert upload(sequencer="00ab").identity == notified(sequencer="AB").identity


@pytest.mark.parametrize(
    ("missing", "identity"),
    [
        pytest.param({}, f"s3:acme-datasets:version={VERSION_ID}:{KEY}", id="version"),
        pytest.param({"version-id": "null"}, f"s3:acme-datasets:request=7Z5T1Q3XK9V0N4MB:{KEY}", id="request"),
    ],
)
def test_without_a_sequencer_an_upload_is_told_by_the_next_best(missing: dict[str, Any], identity: str) -> None:
    assert upload(sequencer=None, **missing).identity == identity


def test_at_last_an_upload_is_told_by_its_content() -> None:
    bare = {"bucket": {"name": "b"}, "object": {"key": "k", "etag": f'"{ETAG}"'}}

    (event,) = parse_intake_message({**UPLOAD, "detail": bare})

    assert event == ObjectCreated(f"s3:b:etag={ETAG}:k", "b", "k", "", ETAG)


def test_a_notification_may_tell_of_several_things() -> None:
    record = NOTIFICATION["Records"][0]

    first, second = parse_intake_message({"Records": [record, {**record, "eventName": "ObjectRemoved:Delete"}]})

    assert isinstance(first, ObjectCreated)
    assert second == IgnoredEvent("ObjectRemoved:Delete starts nothing")


def test_the_test_message_of_s3_starts_nothing() -> None:
    test_event = {"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "acme-datasets", "RequestId": "1"}

    assert isinstance(parse_intake_message(test_event)[0], IgnoredEvent)


def test_an_image_push_is_read() -> None:
    (event,) = parse_intake_message(IMAGE)

    tag, digest = IMAGE["detail"]["image-tag"], IMAGE["detail"]["image-digest"]
    assert event == ImagePushed(
        f"ecr:trainer:{tag}:{digest}:2026-11-03T12:35:49Z",
        "trainer",
        tag,
        digest,
        "application/vnd.oci.image.config.v1+json",
    )


@pytest.mark.parametrize(
    ("manifest", "configuration", "expected"),
    [
        ("application/vnd.oci.image.manifest.v1+json", "a/b", "a/b"),
        ("application/vnd.docker.distribution.manifest.v2+json", "a/b", "a/b"),
        ("application/vnd.oci.image.manifest.v1+json", "", ""),
        ("application/vnd.oci.image.manifest.v1+json", None, ""),
        ("application/vnd.oci.image.index.v1+json", "a/b", ""),
        ("application/vnd.docker.distribution.manifest.list.v2+json", "a/b", ""),
        (None, "a/b", ""),
    ],
)
def test_what_was_pushed_is_known_of_a_manifest_with_a_configuration(
    manifest: str | None, configuration: str | None, expected: str
) -> None:
    types = {"manifest-media-type": manifest, "artifact-media-type": configuration}
    (event,) = parse_intake_message({**IMAGE, "detail": {**IMAGE["detail"], **types}})

    assert isinstance(event, ImagePushed)
    assert (event.media_type, event.identity) == (expected, image_identity())


def image_identity(**changes: object) -> str:
    (event,) = parse_intake_message({**IMAGE, **changes})
    assert isinstance(event, ImagePushed)
    return event.identity


def test_a_tag_that_is_given_to_an_earlier_image_again_is_another_event() -> None:
    assert image_identity(time="2026-11-03T13:00:00Z") != image_identity()


def test_an_image_push_without_a_time_is_told_by_the_id_of_its_event() -> None:
    assert image_identity(time=None) == image_identity(time=None) != image_identity(time=None, id="another")


def test_an_image_pushed_without_a_tag_is_read() -> None:
    detail = {key: value for key, value in IMAGE["detail"].items() if key != "image-tag"}

    (event,) = parse_intake_message({**IMAGE, "detail": detail})

    assert isinstance(event, ImagePushed)
    assert event.tag == ""


@pytest.mark.parametrize("change", [{"action-type": "DELETE"}, {"result": "FAILURE"}])
def test_other_image_actions_start_nothing(change: dict[str, str]) -> None:
    (event,) = parse_intake_message({**IMAGE, "detail": {**IMAGE["detail"], **change}})

    assert isinstance(event, IgnoredEvent)


def test_other_events_of_eventbridge_start_nothing() -> None:
    assert parse_intake_message({**UPLOAD, "detail-type": "Object Deleted"}) == (
        IgnoredEvent("Object Deleted of aws.s3 starts nothing"),
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param("", "is not JSON", id="empty"),
        pytest.param("{", "is not JSON", id="broken"),
        pytest.param("[" * 100_000, "is not JSON", id="endlessly-nested"),
        pytest.param("[]", "not a JSON object but a list", id="list"),
        pytest.param("{}", "nobody we know", id="no-keys"),
        pytest.param('{"source": "gitlab"}', "nobody we know", id="unknown-source"),
        pytest.param('{"Records": 5}', "nobody we know", id="records-that-are-none"),
        pytest.param('{"Records": [{"eventSource": "aws:sqs"}]}', "eventSource", id="records-of-another-service"),
        pytest.param('{"Records": [5]}', "none of an S3 notification", id="record-that-is-none"),
        pytest.param(
            '{"source": "aws.s3", "detail-type": "Object Created"}', "is no upload", id="upload-without-detail"
        ),
        pytest.param(
            '{"source": "aws.s3", "detail-type": "Object Created", "detail": {"bucket": {"name": "b"}, "object": {}}}',
            "object.key: Field required",
            id="upload-without-key",
        ),
        pytest.param(
            '{"source": "aws.ecr", "detail-type": "ECR Image Action", "detail": []}', "is no image action", id="image"
        ),
        pytest.param('{"source": "github"}', "event: Field required", id="github-without-event"),
    ],
)
def test_poison_is_named(body: str, reason: str) -> None:
    with pytest.raises(PermanentError, match=reason):
        parse_intake_message(body)


def test_text_that_is_no_unicode_is_poison_where_it_is_used_and_nowhere_else() -> None:
    push = load_event("github.push")
    message = {"source": "github", "event": "push", "delivery": "guid-1", "body_sha256": "ab"}

    assert parse_intake_message(json.dumps({**message, "payload": {**push, "compare": "\ud800"}}))
    with pytest.raises(PermanentError, match="text that is no Unicode"):
        parse_intake_message(json.dumps({**message, "payload": {**push, "ref": "refs/heads/\ud800"}}))
    with pytest.raises(PermanentError, match="text that is no Unicode"):
        parse_intake_message(json.dumps({**UPLOAD, "detail": {"bucket": {"name": "b"}, "object": {"key": "\udfff"}}}))


@given(
    st.dictionaries(
        st.sampled_from(["source", "detail-type", "detail", "Records", "event", "payload", "delivery", "Event"]), JSON
    ),
    st.sampled_from(
        [{}, {"source": "github", "event": "push"}, {"source": "github", "event": "release"}, UPLOAD, IMAGE]
    ),
)
def test_any_message_is_read_or_named_poison(changes: dict[str, Any], base: dict[str, Any]) -> None:
    try:
        outcome: object = parse_intake_message(json.dumps({**base, **changes}))
    except PermanentError as error:
        outcome = str(error)

    assert outcome or (base | changes).get("Records") == []


@pytest.mark.parametrize(
    ("time", "happened_at"),
    [
        ("2026-01-01T00:00:05Z", datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)),
        ("2026-01-01T00:00:05", None),
        ("yesterday", None),
        (7, None),
        (None, None),
    ],
)
def test_an_event_knows_when_it_happened_as_far_as_its_message_tells(
    time: object, happened_at: datetime | None
) -> None:
    (event,) = parse_intake_message({**UPLOAD, "time": time})

    assert isinstance(event, ObjectCreated)
    assert event.happened_at == happened_at
    assert event == upload()


SELECTED: dict[str, Any] = json.loads(load_event("sqs.intake.eventbridge")["Records"][0]["body"])


def test_an_event_that_a_pattern_selected_is_read_with_its_key() -> None:
    event_id = SELECTED["event"]["id"]

    (event,) = parse_intake_message(SELECTED)

    assert event == BusEvent(
        f"eventbridge:com.acme.features:{event_id}",
        SELECTED["key"],
        event_id,
        "com.acme.features",
        "Features Built",
        SELECTED["event"],
    )
    assert isinstance(event, BusEvent)
    assert event.happened_at == datetime(2026, 11, 3, 12, 41, 7, tzinfo=UTC)


def test_an_event_about_a_job_names_it() -> None:
    (event,) = parse_intake_message({**SELECTED, "event": {**SELECTED["event"], "detail": {"job_id": "bert-1"}}})

    assert isinstance(event, BusEvent)
    assert event.job_id == "bert-1"


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "../../.."},
        {"key": None},
        {"event": None},
        {"event": {**SELECTED["event"], "id": ""}},
        {"event": {**SELECTED["event"], "source": 1}},
        {"event": {**SELECTED["event"], "detail": {"a": "\ud800"}}},
    ],
)
def test_an_event_without_what_it_needs_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(PermanentError):
        parse_intake_message({**SELECTED, **changes})


def test_a_rule_that_a_newer_release_put_is_read_later() -> None:
    with pytest.raises(TransientError, match="the message has format 2"):
        parse_intake_message({**SELECTED, "format": 2})


SCHEDULED: dict[str, Any] = json.loads(load_event("sqs.intake.schedule")["Records"][0]["body"])


@pytest.mark.parametrize("written", ["2026-11-03T12:45:00Z", "2026-11-03T13:45:00+01:00"])
def test_a_time_of_a_schedule_is_read_as_one_event_however_it_is_written(written: str) -> None:
    (event,) = parse_intake_message({**SCHEDULED, "scheduled_time": written})

    at = datetime(2026, 11, 3, 12, 45, tzinfo=UTC)
    assert event == ScheduledTime("schedule:2026-11-03T12:45:00Z", SCHEDULED["key"], at)
    assert isinstance(event, ScheduledTime)
    assert event.happened_at == at


@pytest.mark.parametrize(
    "changes",
    [{"key": "x"}, {"scheduled_time": "<aws.scheduler.scheduled-time>"}, {"scheduled_time": "2026-11-03T12:45:00"}],
)
def test_a_time_without_what_it_needs_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(PermanentError):
        parse_intake_message({**SCHEDULED, **changes})


def test_an_image_that_was_replicated_is_one_that_was_pushed() -> None:
    replicated = load_event("aws.ecr.replication-action")
    failed = {**replicated, "detail": {**replicated["detail"], "result": "FAILED"}}
    (pushed,) = parse_intake_message(IMAGE)

    (event,) = parse_intake_message(replicated)
    (ignored,) = parse_intake_message(failed)

    assert isinstance(event, ImagePushed)
    assert isinstance(pushed, ImagePushed)
    assert (event.repository, event.tag, event.digest) == (pushed.repository, pushed.tag, pushed.digest)
    assert event.identity != pushed.identity
    assert ignored == IgnoredEvent("ECR image action REPLICATE FAILED starts nothing")
