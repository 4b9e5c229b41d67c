from collections.abc import Callable
from copy import deepcopy
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.validate import validate_parameters

from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.bucket_events import read_bucket_events, switch_on

QUEUES = [{"Id": "theirs", "QueueArn": "arn:aws:sqs:us-east-1:123456789012:theirs", "Events": ["s3:ObjectCreated:*"]}]


class Notifications:
    """The notifications of the bucket acme-data, of which moto forgets EventBridge; requests are checked by the model.

    `after_put` is what somebody else does then.
    """

    def __init__(self, **configuration: Any) -> None:
        client = boto3.client("s3", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
        self._model = client.meta.service_model
        self.configuration = configuration
        self.after_put: Callable[[], object] = lambda: None

    def get_bucket_notification_configuration(self, **request: Any) -> Any:
        if request != {"Bucket": "acme-data"}:
            raise ClientError(
                {"Error": {"Code": "NoSuchBucket", "Message": "no"}}, "GetBucketNotificationConfiguration"
            )
        return {"ResponseMetadata": {"RequestId": "1"}, **deepcopy(self.configuration)}

    def put_bucket_notification_configuration(self, **request: Any) -> None:
        operation = self._model.operation_model("PutBucketNotificationConfiguration")
        validate_parameters(request, operation.input_shape)
        assert request["SkipDestinationValidation"]
        self.configuration = request["NotificationConfiguration"]
        self.after_put()


def test_what_else_a_bucket_notifies_is_kept():
    s3 = Notifications(QueueConfigurations=QUEUES)
    before = read_bucket_events("acme-data", s3)

    switch_on(before, s3)

    after = read_bucket_events("acme-data", s3)
    assert (before.is_on, before.others, after.is_on, after.others) == (False, 1, True, 1)
    assert s3.configuration == {"QueueConfigurations": QUEUES, "EventBridgeConfiguration": {}}


def test_a_configuration_that_changed_after_it_was_shown_is_not_replaced():
    s3 = Notifications()
    before = read_bucket_events("acme-data", s3)
    s3.configuration = {"QueueConfigurations": QUEUES}

    with pytest.raises(CommandError, match="changed meanwhile"):
        switch_on(before, s3)

    assert s3.configuration == {"QueueConfigurations": QUEUES}


def test_a_change_at_the_same_time_is_noticed():
    s3 = Notifications()
    s3.after_put = lambda: s3.configuration.update(QueueConfigurations=QUEUES)

    with pytest.raises(CommandError, match="changed at the same time by somebody else"):
        switch_on(read_bucket_events("acme-data", s3), s3)


def test_a_bucket_that_is_not_there_is_told():
    with pytest.raises(CommandError, match="there is no bucket acme-other"):
        read_bucket_events("acme-other", Notifications())


def test_other_errors_are_aws_s_own():
    class Denied:
        def get_bucket_notification_configuration(self, **_: Any) -> Any:
            raise ClientError(
                {"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetBucketNotificationConfiguration"
            )

    with pytest.raises(ClientError, match="AccessDenied"):
        read_bucket_events("acme-data", Denied())
