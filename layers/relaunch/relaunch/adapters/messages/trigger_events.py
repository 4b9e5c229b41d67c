"""Parses S3 uploads, ECR image pushes and events that patterns selected into trigger events.

Supports "Object Created" of aws.s3 (Amazon S3 User Guide, "EventBridge event message structure"), S3 notifications
("Event message structure"), and "ECR Image Action" and "ECR Replication Action" of aws.ecr (Amazon ECR User Guide,
"Amazon ECR events and EventBridge"). Samples: events/aws.s3.object-created.json, s3.notification.json,
aws.ecr.image-action.json, aws.ecr.replication-action.json.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import unquote_plus

from relaunch.adapters.received_type import ReceivedType
from relaunch.adapters.validation import permanent_if_invalid
from relaunch.core.records import dataclass
from relaunch.core.triggers.chains import identity_of, job_of
from relaunch.core.triggers.events import BusEvent, ImagePushed, ObjectCreated, ScheduledTime
from relaunch.core.triggers.matching import IgnoredEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bucket:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    """An object; where two names are given, the first is EventBridge's and the second that of S3 notifications."""

    key: str
    size: int = 0
    etag: str | None = field(default=None, metadata={"names": ("etag", "eTag")})
    version_id: str | None = field(default=None, metadata={"names": ("version-id", "versionId")})
    sequencer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Upload:
    bucket: _Bucket
    object: _Object
    request_id: str = field(default="", metadata={"names": ("request-id",)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _ResponseElements:
    request_id: str = field(default="", metadata={"names": ("x-amz-request-id",)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    event_source: Literal["aws:s3"] = field(metadata={"names": ("eventSource",)})
    event_name: str = field(metadata={"names": ("eventName",)})
    s3: _Upload
    response: _ResponseElements = field(default_factory=_ResponseElements, metadata={"names": ("responseElements",)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _ImageAction:
    repository: str = field(metadata={"names": ("repository-name",)})
    action: str = field(metadata={"names": ("action-type",)})
    result: str = ""
    digest: str = field(metadata={"names": ("image-digest",)})
    tag: str | None = field(default=None, metadata={"names": ("image-tag",)})
    manifest_type: str | None = field(default=None, metadata={"names": ("manifest-media-type",)})
    configuration_type: str | None = field(default=None, metadata={"names": ("artifact-media-type",)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _BusMessage:
    """What the rule of a pattern sends."""

    key: str = field(metadata={"pattern": "^[a-z2-7]{12}$"})
    event: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class _BusEvent:
    id: str = field(metadata={"min_length": 1, "max_length": 200})
    source: str = field(metadata={"min_length": 1, "max_length": 256})
    detail_type: str = field(metadata={"names": ("detail-type",), "max_length": 256})


_BUS_MESSAGE = ReceivedType(_BusMessage)
_BUS_EVENT = ReceivedType(_BusEvent)
_UPLOAD = ReceivedType(_Upload)
_RECORD = ReceivedType(_Record)
_IMAGE_ACTION = ReceivedType(_ImageAction)
_MANIFESTS = frozenset(
    ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
)


def parse_bus_event(message: Mapping[str, object]) -> BusEvent:
    """Parse an event that the pattern of a trigger selected, with the pattern's key.

    EventBridge delivers an event at least once, with the same ID ("Event delivery level", EventBridge User Guide), and
    once for each rule that selects it: it is one event, whichever pattern selected it.

    Raises:
        PermanentError: key, ID, source or detail type is missing.
    """
    with permanent_if_invalid("the message has no event with the key of a pattern"):
        parsed = _BUS_MESSAGE.read(message)
        event = _BUS_EVENT.read(parsed.event)
    identity = identity_of(event.source, event.id, parsed.event)
    job_id = job_of(parsed.event)
    return BusEvent(identity, parsed.key, event.id, event.source, event.detail_type, parsed.event, job_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScheduleMessage:
    """What a schedule sends."""

    key: str = field(metadata={"pattern": "^[a-z2-7]{12}$"})
    scheduled_time: datetime = field(metadata={"tz_constraint": "aware"})


_SCHEDULE_MESSAGE = ReceivedType(_ScheduleMessage)


def parse_scheduled_time(message: Mapping[str, object]) -> ScheduledTime:
    """Parse a time of a schedule; one that comes twice is the same event.

    Raises:
        PermanentError: key or time is missing or invalid.
    """
    with permanent_if_invalid("the message has no time of a schedule"):
        parsed = _SCHEDULE_MESSAGE.read(message)
        at = parsed.scheduled_time.astimezone(UTC)
    return ScheduledTime(f"schedule:{at:%Y-%m-%dT%H:%M:%SZ}", parsed.key, at)


def parse_upload(event: Mapping[str, object]) -> ObjectCreated:
    """Parse "Object Created" of EventBridge; its keys are not encoded.

    Raises:
        PermanentError: bucket or key is missing.
    """
    with permanent_if_invalid(f"EventBridge event {event.get('id')} is no upload"):
        upload = _UPLOAD.read(event.get("detail"))
    return _describe_object(upload.bucket.name, upload.object.key, upload.object, upload.request_id)


def parse_notification_record(record: object) -> ObjectCreated | IgnoredEvent:
    """Parse a record of an S3 notification; its keys are form-encoded (a space is a plus sign).

    Raises:
        PermanentError: it is not a record of S3.
    """
    with permanent_if_invalid("the record is none of an S3 notification"):
        parsed = _RECORD.read(record)
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
        image = _IMAGE_ACTION.read(event.get("detail"))
    if image.action not in ("PUSH", "REPLICATE") or image.result != "SUCCESS":
        return IgnoredEvent(f"ECR image action {image.action} {image.result} starts nothing")
    tag = image.tag or ""
    moment = event.get("time") or event.get("id") or ""
    identity = f"ecr:{image.repository}:{tag}:{image.digest}:{moment}"
    # What the event of an index, which lacks a configuration, has there is not documented.
    media_type = image.configuration_type if image.manifest_type in _MANIFESTS else ""
    return ImagePushed(identity, image.repository, tag, image.digest, media_type or "")


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
