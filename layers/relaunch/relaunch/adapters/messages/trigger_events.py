"""Parses S3 uploads and ECR image pushes into trigger events.

Supports "Object Created" of aws.s3 (Amazon S3 User Guide, "EventBridge event message structure"), S3 notifications
("Event message structure") and "ECR Image Action" of aws.ecr (Amazon ECR User Guide, "Amazon ECR events
and EventBridge"). Samples: events/aws.s3.object-created.json, s3.notification.json, aws.ecr.image-action.json.
"""

from collections.abc import Mapping
from typing import Literal
from urllib.parse import unquote_plus

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from relaunch.adapters.validation import describe_errors
from relaunch.core.triggers.events import ImagePushed, ObjectCreated
from relaunch.core.triggers.matching import IgnoredEvent
from relaunch.ports import PermanentError


class _Payload(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Bucket(_Payload):
    name: str


class _EventBridgeObject(_Payload):
    key: str
    size: int = 0
    etag: str | None = None
    version_id: str | None = Field(default=None, alias="version-id")
    sequencer: str | None = None


class _EventBridgeUpload(_Payload):
    bucket: _Bucket
    object: _EventBridgeObject
    request_id: str = Field(default="", alias="request-id")


class _NotificationObject(_Payload):
    key: str
    size: int = 0
    etag: str | None = Field(default=None, alias="eTag")
    version_id: str | None = Field(default=None, alias="versionId")
    sequencer: str | None = None


class _NotificationBody(_Payload):
    bucket: _Bucket
    object: _NotificationObject


class _ResponseElements(_Payload):
    request_id: str = Field(default="", alias="x-amz-request-id")


class _Record(_Payload):
    event_source: Literal["aws:s3"] = Field(alias="eventSource")
    event_name: str = Field(alias="eventName")
    s3: _NotificationBody
    response: _ResponseElements = Field(default=_ResponseElements(), alias="responseElements")


class _ImageAction(_Payload):
    repository: str = Field(alias="repository-name")
    action: str = Field(alias="action-type")
    result: str = ""
    digest: str = Field(alias="image-digest")
    tag: str | None = Field(default=None, alias="image-tag")


def parse_upload(event: Mapping[str, object]) -> ObjectCreated:
    """Parse "Object Created" of EventBridge; its keys are not encoded.

    Raises:
        PermanentError: bucket or key is missing.
    """
    try:
        upload = _EventBridgeUpload.model_validate(event.get("detail"))
    except ValidationError as error:
        raise PermanentError(f"EventBridge event {event.get('id')} is no upload: {describe_errors(error)}") from error
    return _describe_object(upload.bucket.name, upload.object.key, upload.object, upload.request_id)


def parse_notification_record(record: object) -> ObjectCreated | IgnoredEvent:
    """Parse a record of an S3 notification; its keys are form-encoded (a space is a plus sign).

    Raises:
        PermanentError: it is not a record of S3.
    """
    try:
        parsed = _Record.model_validate(record)
    except ValidationError as error:
        raise PermanentError(f"the record is none of an S3 notification: {describe_errors(error)}") from error
    if not parsed.event_name.removeprefix("s3:").startswith("ObjectCreated:"):
        return IgnoredEvent(f"{parsed.event_name} starts nothing")
    created = parsed.s3.object
    return _describe_object(parsed.s3.bucket.name, unquote_plus(created.key), created, parsed.response.request_id)


def parse_image_action(event: Mapping[str, object]) -> ImagePushed | IgnoredEvent:
    """Parse "ECR Image Action"; the same image with the same tag is the same event.

    Raises:
        PermanentError: repository, action or digest is missing.
    """
    try:
        image = _ImageAction.model_validate(event.get("detail"))
    except ValidationError as error:
        raise PermanentError(
            f"EventBridge event {event.get('id')} is no image action: {describe_errors(error)}"
        ) from error
    if image.action != "PUSH" or image.result != "SUCCESS":
        return IgnoredEvent(f"ECR image action {image.action} {image.result} starts nothing")
    tag = image.tag or ""
    return ImagePushed(f"ecr:{image.repository}:{tag}:{image.digest}", image.repository, tag, image.digest)


def _describe_object(
    bucket: str, key: str, created: _EventBridgeObject | _NotificationObject, request_id: str
) -> ObjectCreated:
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
