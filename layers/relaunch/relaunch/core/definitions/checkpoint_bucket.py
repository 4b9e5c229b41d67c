"""What can be checked of the bucket of a definition's checkpoints before a job is launched."""

from relaunch.core.records import dataclass

_ROLE = "the role of launch_attempt"
_OTHERWISE = "otherwise its jobs wait before their first launch until they may be read"


@dataclass(frozen=True, slots=True)
class CheckpointGrants:
    """What the stack's role may use: names of buckets, and ARNs of KMS keys."""

    buckets: tuple[str, ...] = ()
    key_arns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BucketFacts:
    """What is known of a bucket.

    `key` is the customer managed KMS key that new objects are encrypted with: its ARN, its ID or an alias; empty if
    there is none, or if it is not known.
    """

    exists: bool = True
    key: str = ""


def bucket_of(checkpoint_uri: str) -> str:
    """Return the bucket of an S3 URI."""
    return checkpoint_uri.removeprefix("s3://").partition("/")[0]


def bucket_problem(bucket: str, facts: BucketFacts) -> str:
    """Return why no job can write or read its checkpoints, empty if it may."""
    return "" if facts.exists else f"there is no bucket {bucket}, which `checkpoint` names"


def bucket_notices(bucket: str, facts: BucketFacts, grants: CheckpointGrants) -> tuple[str, ...]:
    """Return what is missing in the parameters of the stack; policies of the bucket and the key are not known here."""
    notices = []
    if bucket not in grants.buckets:
        notices.append(
            f"the stack's CheckpointBuckets does not name {bucket}: add it, or let {_ROLE} list and read it by its "
            f"bucket policy; {_OTHERWISE}"
        )
    if facts.key and not _is_granted(facts.key, grants.key_arns):
        notices.append(
            f"{bucket} encrypts with the KMS key {facts.key}, which the stack's CheckpointKeyArns does not name: add "
            f"its ARN, or let {_ROLE} use it by its key policy; {_OTHERWISE}"
        )
    return tuple(notices)


def _is_granted(key: str, key_arns: tuple[str, ...]) -> bool:
    """Return whether a key is granted; any granted key may be the one of an alias."""
    if "alias/" in key:
        return bool(key_arns)
    return any(arn == key or arn.endswith(f":key/{key}") for arn in key_arns)
