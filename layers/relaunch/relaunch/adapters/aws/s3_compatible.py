"""A client of another object store that has the API of Amazon S3."""

from typing import TYPE_CHECKING, NamedTuple

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# The store knows its buckets by their host names, and not the checksums that botocore sends and expects otherwise.
_OTHER_STORE = Config(
    s3={"addressing_style": "virtual"},
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)


class StoreKeys(NamedTuple):
    """Temporary credentials for the store."""

    access_key_id: str
    secret_access_key: str
    session_token: str


def open_s3_compatible(endpoint: str, region: str, keys: StoreKeys, config: Config) -> "S3Client":
    """Return a client of S3 that calls this endpoint, with requests signed for this region."""
    return boto3.client(
        "s3",
        region_name=region,
        endpoint_url=endpoint,
        aws_access_key_id=keys.access_key_id,
        aws_secret_access_key=keys.secret_access_key,
        aws_session_token=keys.session_token,
        config=config.merge(_OTHER_STORE),
    )
