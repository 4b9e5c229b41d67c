"""Checkpoints in the store that their URI names."""

from collections.abc import Callable, Mapping

from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.ports import CheckpointSource, PermanentError
from relaunch.ports.checkpoints import ignore_unusable


class CheckpointStores:
    """Implements CheckpointSource by one source for each scheme of URIs."""

    def __init__(self, stores: Mapping[str, CheckpointSource]) -> None:
        self._stores = stores

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
            PermanentError: checkpoints cannot be read.
        """
        return self._store_of(checkpoint_uri).newest_complete(
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
            TooManyObjectsError: the job has more than `at_most` objects, or than are listed in any case.
            PermanentError: checkpoints cannot be read.
        """
        return self._store_of(checkpoint_uri).newest_saved(
            checkpoint_uri, job_id, at_most=at_most, on_unusable=on_unusable
        )

    def probe(self, checkpoint_uri: str, job_id: str) -> None:
        """Check, before a job without checkpoints is launched, that its checkpoints could be read.

        Raises:
            PermanentError: they could not.
        """
        self._store_of(checkpoint_uri).probe(checkpoint_uri, job_id)

    def _store_of(self, uri: str) -> CheckpointSource:
        store = self._stores.get(uri.partition("://")[0])
        if store is None:
            raise PermanentError(
                f"the stack does not read {uri}: it reads {', '.join(f'{each}://' for each in self._stores)}"
            )
        return store
