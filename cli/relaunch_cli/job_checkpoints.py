"""What a job has saved, for `show` and `explain`: read once for the one job, by the credentials of the caller."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from relaunch.ports import PortError
from relaunch.usecases.find_checkpoints import newest_of

if TYPE_CHECKING:
    from relaunch.core.jobs.job import Job
    from relaunch.core.jobs.progress import SavedCheckpoint
    from relaunch.ports import CheckpointSource


@dataclass(frozen=True, slots=True)
class JobCheckpoints:
    """The newest complete checkpoint of a job, None if it left none.

    `problem` says why that is not known, empty if it is; `unusable` names newer ones that cannot be used, and why.
    """

    newest: "SavedCheckpoint | None" = None
    problem: str = ""
    unusable: tuple[str, ...] = ()


def load_checkpoints(job: "Job", checkpoints: "CheckpointSource") -> JobCheckpoints:
    """Return what a job has saved; of one that may not be read, why."""
    unusable: list[str] = []
    try:
        newest = newest_of(job, checkpoints, unusable.append)
    except PortError as error:
        return JobCheckpoints(problem=str(error))
    return JobCheckpoints(newest, unusable=tuple(unusable))
