"""Checkpoints in OSS, read by the API of Amazon S3 that OSS has.

Source: "Access OSS using AWS SDKs" and "Compatibility with Amazon S3", Alibaba Cloud OSS: ListObjectsV2 and GetObject,
at s3.oss-REGION.aliyuncs.com, with the bucket in the host name.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from relaunch.adapters.alibaba.ram_role import AssumedRole
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.ports import CheckpointSource
from relaunch.ports.checkpoints import ignore_unusable

_SPARE = timedelta(seconds=60)


def endpoint_of(region: str) -> str:
    """Return the public endpoint of OSS in a region for clients of S3."""
    return f"https://s3.oss-{region}.aliyuncs.com"


class OssCheckpoints:
    """Implements CheckpointSource for URIs of OSS.

    `assume` returns credentials of a RAM role that may oss:ListObjects and oss:GetObject; `open_source` reads with
    them.
    """

    def __init__(
        self,
        assume: Callable[[], AssumedRole],
        open_source: Callable[[AssumedRole], CheckpointSource],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._assume = assume
        self._open_source = open_source
        self._now = now
        self._opened: tuple[CheckpointSource, datetime] | None = None

    def newest_complete(
        self,
        checkpoint_uri: str,
        job_id: str,
        *,
        step: int | None = None,
        attempt: int | None = None,
        on_unusable: Callable[[str], None] = ignore_unusable,
    ) -> str | None:
        """Return the URI of the newest complete checkpoint of the job, None if there is none.

        Raises:
            TransientError: OSS or STS is throttling or not reachable.
            PermanentError: checkpoints cannot be read.
        """
        return self._checkpoints().newest_complete(
            checkpoint_uri, job_id, step=step, attempt=attempt, on_unusable=on_unusable
        )

    def newest_saved(
        self,
        checkpoint_uri: str,
        job_id: str,
        *,
        at_most: int | None = None,
        on_unusable: Callable[[str], None] = ignore_unusable,
    ) -> SavedCheckpoint | None:
        """Return the newest complete checkpoint of the job with its step and time, None if there is none.

        Raises:
            TransientError: OSS or STS is throttling or not reachable.
            TooManyObjectsError: the job has more than `at_most` objects, or than are listed in any case.
            PermanentError: checkpoints cannot be read.
        """
        return self._checkpoints().newest_saved(checkpoint_uri, job_id, at_most=at_most, on_unusable=on_unusable)

    def probe(self, checkpoint_uri: str, job_id: str) -> None:
        """Check, before a job without checkpoints is launched, that its checkpoints could be read.

        Raises:
            TransientError: OSS or STS is throttling or not reachable.
            PermanentError: they could not.
        """
        self._checkpoints().probe(checkpoint_uri, job_id)

    def _checkpoints(self) -> CheckpointSource:
        now = self._now()
        if self._opened is None or now >= self._opened[1]:
            role = self._assume()
            # Credentials of which STS does not say how long they hold are used once.
            good_until = role.expires_at - _SPARE if role.expires_at else now
            self._opened = self._open_source(role), good_until
        return self._opened[0]
