"""EventBridge for the uploads to a bucket: switched on without losing what else the bucket notifies.

PutBucketNotificationConfiguration replaces the whole configuration (Amazon S3 API Reference), and takes no condition on
what was read: what is there after the write is compared with what was there before.
"""

from typing import Any

from botocore.exceptions import ClientError

from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.findings import EVENT_BRIDGE, BucketEvents


def read_bucket_events(bucket: str, s3: Any) -> BucketEvents:
    """Read the notification configuration of a bucket.

    Raises:
        CommandError: there is no such bucket, or it may not be read.
    """
    try:
        answer = s3.get_bucket_notification_configuration(Bucket=bucket)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == "NoSuchBucket":
            raise CommandError(
                f"there is no bucket {bucket}", f"make it: aws s3 mb s3://{bucket}", exit_codes.NOT_FOUND
            ) from error
        raise
    return BucketEvents(bucket, {name: value for name, value in answer.items() if name != "ResponseMetadata"})


def switch_on(events: BucketEvents, s3: Any) -> None:
    """Let the events of a bucket go to EventBridge; what else it notifies is kept.

    Raises:
        CommandError: the configuration was changed meanwhile.
        ClientError, BotoCoreError: a call failed; whether it was switched on is seen by another run.
    """
    bucket = events.bucket
    if read_bucket_events(bucket, s3) != events:
        raise CommandError(f"the notifications of {bucket} were changed meanwhile: run relaunch init again")
    # Of destinations that are not there any more nothing is asked: they were there before.
    s3.put_bucket_notification_configuration(
        Bucket=bucket,
        NotificationConfiguration={**events.configuration, EVENT_BRIDGE: {}},
        SkipDestinationValidation=True,
    )
    after = read_bucket_events(bucket, s3)
    if not after.is_on or after.others != events.others:
        raise CommandError(
            f"the notifications of {bucket} were changed at the same time by somebody else: compare them",
            f"aws s3api get-bucket-notification-configuration --bucket {bucket}",
        )
