"""Buckets of checkpoints, as far as the caller may see their settings."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from relaunch.adapters.aws.errors import aws_errors, error_code, is_transient
from relaunch.core.definitions.checkpoint_bucket import BucketFacts

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# The key that AWS manages for S3 lets everyone in the account decrypt whom S3 lets read.
_MANAGED_KEY = "alias/aws/s3"


class S3Buckets:
    """Implements BucketSource."""

    def __init__(self, client: "S3Client") -> None:
        self._client = client

    def describe(self, bucket: str) -> BucketFacts:
        """Describe a bucket by HeadBucket and GetBucketEncryption; what the caller may not see is left open.

        Raises:
            TransientError: throttled or unreachable.
        """
        with aws_errors(f"describing bucket {bucket}"):
            try:
                self._client.head_bucket(Bucket=bucket)
                rules = self._client.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
            except ClientError as error:
                if is_transient(error):
                    raise
                # HeadBucket has no body to name NoSuchBucket (HeadBucket, Amazon S3 API Reference).
                return BucketFacts(exists=error_code(error) not in {"404", "NoSuchBucket"})
        keys = [rule.get("ApplyServerSideEncryptionByDefault", {}).get("KMSMasterKeyID", "") for rule in rules]
        return BucketFacts(key=next((key for key in keys if key and not key.endswith(_MANAGED_KEY)), ""))
