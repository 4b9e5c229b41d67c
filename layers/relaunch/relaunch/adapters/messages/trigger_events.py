"""Parses S3 uploads, ECR image pushes and events that patterns selected into trigger events.

Supports "Object Created" of aws.s3 (Amazon S3 User Guide, "EventBridge event message structure"), S3 notifications
("Event message structure"), and "ECR Image Action" and "ECR Replication Action" of aws.ecr (Amazon ECR User Guide,
"Amazon ECR events and EventBridge"). Samples: events/aws.s3.object-created.json, s3.notification.json,
aws.ecr.image-action.json, aws.ecr.replication-action.json.
"""

from collections.abc import Mapping
from datetime import UTC
from typing import Literal
from urllib.parse import unquote_plus

from pydantic import AliasChoices, AwareDatetime, BaseModel, ConfigDict, Field

from relaunch.adapters.validation import permanent_if_invalid
from relaunch.core.triggers.chains import identity_of, job_of
from relaunch.core.triggers.events import BusEvent, ImagePushed, ObjectCreated, ScheduledTime
from relaunch.core.triggers.matching import IgnoredEvent


class _Payload(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class _Bucket(_Payload):
    name: str


class _Object(_Payload):
    """An object; where two names are given, the first is EventBridge's and the second that of S3 notifications."""

    key: str
    size: int = 0
    etag: str | None = Field(default=None, validation_alias=AliasChoices("etag", "eTag"))
    version_id: str | None = Field(default=None, validation_alias=AliasChoices("version-id", "versionId"))
    sequencer: str | None = None


class _Upload(_Payload):
    bucket: _Bucket
    object: _Object
    request_id: str = Field(default="", alias="request-id")


class _ResponseElements(_Payload):
    request_id: str = Field(default="", alias="x-amz-request-id")


class _Record(_Payload):
    event_source: Literal["aws:s3"] = Field(alias="eventSource")
    event_name: str = Field(alias="eventName")
    s3: _Upload
    response: _ResponseElements = Field(default_factory=_ResponseElements, alias="responseElements")


class _ImageAction(_Payload):
    repository: str = Field(alias="repository-name")
    action: str = Field(alias="action-type")
    result: str = ""
    digest: str = Field(alias="image-digest")
    tag: str | None = Field(default=None, alias="image-tag")


class _BusMessage(_Payload):
    """What the rule of a pattern sends."""

    key: str = Field(pattern="^[a-z2-7]{12}$")
    event: dict[str, object]


class _BusEvent(_Payload):
    id: str = Field(min_length=1, max_length=200)
    source: str = Field(min_length=1, max_length=256)
    detail_type: str = Field(alias="detail-type", max_length=256)


def parse_bus_event(message: Mapping[str, object]) -> BusEvent:
    """Parse an event that the pattern of a trigger selected, with the pattern's key.

    EventBridge delivers an event at least once, with the same ID ("Event delivery level", EventBridge User Guide), and
    once for each rule that selects it: it is one event, whichever pattern selected it.

    Raises:
        PermanentError: key, ID, source or detail type is missing.
    """
    with permanent_if_invalid("the message has no event with the key of a pattern"):
        parsed = _BusMessage.model_validate(message)
        event = _BusEvent.model_validate(parsed.event)
    identity = identity_of(event.source, event.id, parsed.event)
    job_id = job_of(parsed.event)
    return BusEvent(identity, parsed.key, event.id, event.source, event.detail_type, parsed.event, job_id)


class _ScheduleMessage(_Payload):
    """What a schedule sends."""

    key: str = Field(pattern="^[a-z2-7]{12}$")
    scheduled_time: AwareDatetime


def parse_scheduled_time(message: Mapping[str, object]) -> ScheduledTime:
    """Parse a time of a schedule; one that comes twice is the same event.

    Raises:
        PermanentError: key or time is missing or invalid.
    """
    with permanent_if_invalid("the message has no time of a schedule"):
        parsed = _ScheduleMessage.model_validate(message)
        at = parsed.scheduled_time.astimezone(UTC)
    return ScheduledTime(f"schedule:{at:%Y-%m-%dT%H:%M:%SZ}", parsed.key, at)


def parse_upload(event: Mapping[str, object]) -> ObjectCreated:
    """Parse "Object Created" of EventBridge; its keys are not encoded.

    Raises:
        PermanentError: bucket or key is missing.
    """
    with permanent_if_invalid(f"EventBridge event {event.get('id')} is no upload"):
        upload = _Upload.model_validate(event.get("detail"))
    return _describe_object(upload.bucket.name, upload.object.key, upload.object, upload.request_id)


def parse_notification_record(record: object) -> ObjectCreated | IgnoredEvent:
    """Parse a record of an S3 notification; its keys are form-encoded (a space is a plus sign).

    Raises:
        PermanentError: it is not a record of S3.
    """
    with permanent_if_invalid("the record is none of an S3 notification"):
        parsed = _Record.model_validate(record)
    if not parsed.event_name.removeprefix("s3:").startswith("ObjectCreated:"):
        return IgnoredEvent(f"{parsed.event_name} starts nothing")
    created = parsed.s3.object
    return _describe_object(parsed.s3.bucket.name, unquote_plus(created.key), created, parsed.response.request_id)


def parse_image_action(event: Mapping[str, object]) -> ImagePushed | IgnoredEvent:
    """Parse "ECR Image Action", or "ECR Replication Action": an image has come from another region or account.

    The same image with the same tag at the same time is the same event.
    ECR refuses a push that changes nothing ("PutImage", ImageAlreadyExistsException), so an image that gets a tag again
    had lost it. EventBridge delivers an event more than once, with the same `time`.

    Raises:
        PermanentError: repository, action or digest is missing.
    """
    with permanent_if_invalid(f"EventBridge event {event.get('id')} is no image action"):
        image = _ImageAction.model_validate(event.get("detail"))
    if image.action not in ("PUSH", "REPLICATE") or image.result != "SUCCESS":
        return IgnoredEvent(f"ECR image action {image.action} {image.result} starts nothing")
    tag = image.tag or ""
    moment = event.get("time") or event.get("id") or ""
    return ImagePushed(f"ecr:{image.repository}:{tag}:{image.digest}:{moment}", image.repository, tag, image.digest)


def _describe_object(bucket: str, key: str, created: _Object, request_id: str) -> ObjectCreated:
    """Return the event of an upload, with the same identity for both formats.

    Both have the sequencer, which is unique per write; the number of its leading zeros varies. The other fields are
    used for emulators and S3-compatible stores that omit it.
    """
    version_id = "" if created.version_id in (None, "null") else created.version_id or ""
    etag = (created.etag or "").strip('"')
    sequencer = (created.sequencer or "").upper().lstrip("0")
    write = next(
        f"{name}={value}"
        for name, value in (
            ("sequencer", sequencer),
            ("version", version_id),
            ("request", request_id),
            ("etag", etag),
        )
        if value or name == "etag"
    )
    return ObjectCreated(f"s3:{bucket}:{write}:{key}", bucket, key, version_id, etag, created.size)
