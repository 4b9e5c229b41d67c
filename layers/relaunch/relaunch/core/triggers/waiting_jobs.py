"""How many jobs wait, and whether one more may: a flood of events must not become jobs that all run in the end.

Requests of job_api fill half of what may wait, so that however many a caller sends, events start their jobs; those of
one caller fill half of that, so that others still start theirs.
"""

from collections.abc import Iterable

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.records import dataclass
from relaunch.core.triggers.matching import is_of_caller, job_id_prefix


@dataclass(frozen=True, slots=True)
class WaitingJobs:
    """How many open jobs are on no instance, whatever they wait for: a slot, an image, capacity, their launch.

    `limit_of_definition` and `limit_of_stack` are the limits: max_waiting_jobs and MaxWaitingJobs. `has_triggers`:
    events start jobs of the definition. `of_caller`: those that the caller of job_api asked for who asks now; 0 if none
    does.
    """

    definition: str
    of_definition: int
    limit_of_definition: int
    of_stack: int
    limit_of_stack: int
    has_triggers: bool = True
    of_caller: int = 0

    def __str__(self) -> str:
        """Return the numbers with their limits."""
        return (
            f"{self.of_definition} of {self.definition} (max_waiting_jobs is {self.limit_of_definition}), "
            f"{self.of_stack} in the stack (MaxWaitingJobs is {self.limit_of_stack})"
        )

    @property
    def reached_limit(self) -> str:
        """Return why no further job of the definition may wait; empty if it may."""
        if self.of_definition < self.limit_of_definition and self.of_stack < self.limit_of_stack:
            return ""
        return f"too many jobs wait: {self}; {_ADVICE}"

    @property
    def reached_limit_of_requests(self) -> str:
        """Return why no further request of job_api may start a job of the definition; empty if it may."""
        of_definition, of_stack = limits_of_requests(
            self.limit_of_definition, self.limit_of_stack, has_triggers=self.has_triggers
        )
        of_caller = limit_of_caller(self.limit_of_stack)
        if self.of_caller >= of_caller:
            return (
                f"too many of your jobs wait: {self.of_caller}, and one caller of job_api may have {of_caller} waiting "
                f"in the stack (MaxWaitingJobs is {self.limit_of_stack}), so that others start theirs; {_ADVICE}"
            )
        if self.of_definition < of_definition and self.of_stack < of_stack:
            return ""
        return (
            f"too many jobs wait: {self}; requests of job_api may fill {of_definition} of the first and {of_stack} of "
            f"the second limit, what is left is kept for events; {_ADVICE}"
        )


_ADVICE = "no job was started: try again when fewer wait, or raise the limit"


def limits_of_requests(of_definition: int, of_stack: int, *, has_triggers: bool) -> tuple[int, int]:
    """Return how many jobs of a definition, and of the stack, may wait where a request of job_api starts another one.

    That is half of what may wait, at least one; of a definition without triggers no event needs the other half.
    """
    return _half(of_definition) if has_triggers else of_definition, _half(of_stack)


def limit_of_caller(of_stack: int) -> int:
    """Return how many jobs one caller of job_api may have waiting: half of those that requests may, at least one."""
    return _half(_half(of_stack))


def _half(limit: int) -> int:
    return (limit + 1) // 2


def read_limit(limits: StackLimits) -> int:
    """Return how many open jobs to read at most: that many contain as many waiting ones as the stack may have."""
    return limits.max_waiting_jobs + limits.max_running_jobs


def count_waiting(
    definition: JobDefinition,
    open_jobs: Iterable[str],
    slot_holders: Iterable[str],
    limits: StackLimits,
    caller: str = "",
) -> WaitingJobs:
    """Count the waiting jobs among the ids of open jobs: those that have no slot for an instance.

    `caller` is the caller of job_api who asks for another one, empty if none does, or it calls the function itself.
    """
    waiting = set(open_jobs).difference(slot_holders)
    prefix = job_id_prefix(definition.name)
    return WaitingJobs(
        definition.name,
        sum(job_id.rpartition("-")[0] == prefix for job_id in waiting),
        definition.max_waiting_jobs,
        len(waiting),
        limits.max_waiting_jobs,
        has_triggers=bool(definition.triggers),
        of_caller=sum(is_of_caller(job_id, caller) for job_id in waiting) if caller else 0,
    )
