"""What HeadBucket and GetBucketEncryption tell of a bucket."""

from typing import Any

import pytest

from fakes.aws import Faults, make_client, refusal, refuse
from relaunch.adapters.aws.checkpoint_buckets import S3Buckets
from relaunch.core.definitions.checkpoint_bucket import BucketFacts
from relaunch.ports import TransientError

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
UNKNOWN = BucketFacts()


@pytest.fixture
def s3(aws: None) -> Any:
    return make_client("s3")


def create(s3: Any, name: str, rule: dict[str, str] | None = None) -> None:
    s3.create_bucket(Bucket=name)
    if rule:
        rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": rule}]}
        s3.put_bucket_encryption(Bucket=name, ServerSideEncryptionConfiguration=rules)


@pytest.mark.parametrize(
    ("name", "rule", "key"),
    [
        ("plain", None, ""),
        ("s3-keys", {"SSEAlgorithm": "AES256"}, ""),
        ("managed-key", {"SSEAlgorithm": "aws:kms"}, ""),
        ("managed-alias", {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "alias/aws/s3"}, ""),
        ("own-key", {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}, KEY),
        ("own-alias", {"SSEAlgorithm": "aws:kms:dsse", "KMSMasterKeyID": "alias/training"}, "alias/training"),
    ],
)
def test_only_a_key_of_the_customer_is_told(s3, name, rule, key):
    create(s3, name, rule)

    assert S3Buckets(s3).describe(name) == BucketFacts(key=key)


def test_a_bucket_that_is_not_there_is_told(s3):
    assert S3Buckets(s3).describe("no-such-bucket") == BucketFacts(exists=False)


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("HeadBucket", "403"),
        ("GetBucketEncryption", "AccessDenied"),
        ("GetBucketEncryption", "ServerSideEncryptionConfigurationNotFoundError"),
    ],
)
def test_what_the_caller_may_not_see_is_left_open(s3, operation, code):
    create(s3, "hidden", {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY})
    Faults(s3, "s3", operation).on_send = refuse(refusal(code))

    assert S3Buckets(s3).describe("hidden") == UNKNOWN


def test_throttling_is_transient(s3):
    create(s3, "busy")
    Faults(s3, "s3", "HeadBucket").on_send = refuse(refusal("SlowDown"))

    with pytest.raises(TransientError, match="describing bucket busy"):
        S3Buckets(s3).describe("busy")
