"""The status of a job on the commit that started it ("REST API endpoints for commit statuses", GitHub Docs).

Everybody who may read a repository reads the statuses of its commits, of a public one the whole world: names of
accounts, roles, buckets and registries in a job's reason are left out.
"""

import re
from datetime import datetime, timedelta
from enum import StrEnum

from relaunch.core.definitions.definition import GITHUB_REPOSITORY_PATTERN
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.changes import ChangedPart, cut
from relaunch.core.jobs.state import CostBasis, JobState, WaitReason
from relaunch.core.lifecycle.change_events import JobStateChange
from relaunch.core.notices.text import write_usd
from relaunch.core.records import dataclass

MAX_DESCRIPTION = 140
"""The most characters of a description; a longer one is refused with 422 (https://github.com/zalando/zappr/issues/378)."""
CONTEXT_PREFIX = "relaunch/"
"""What the context of a status begins with; the name of the definition follows."""
UNDER_WAY = timedelta(seconds=45)
"""How long after a request was sent GitHub may take it: longer than our time-out, and GitHub's own of ten seconds."""
RECEIVER = "github:commit-statuses"
"""The name of the receiver that sets them, which is none that people can give one."""
_REPOSITORY = re.compile(GITHUB_REPOSITORY_PATTERN)
# SHA-1, or SHA-256 of a repository with that object format; a ref that was deleted has the one of zeros.
_SHA = re.compile("(?!0+$)(?:[0-9a-f]{40}|[0-9a-f]{64})")
# An ARN or the URI of an object or an image, an account's number.
_PRIVATE = re.compile(r"\barn:aws[\w-]*:\S+|\bs3://\S+|\b\d{12}\.dkr\.ecr\.\S+|\b\d{12}\b", re.ASCII)
_HIDDEN = "…"
_WAITS = {
    WaitReason.LAUNCH: "queued",
    WaitReason.IMAGE: "waits for its image",
    WaitReason.SLOT: "waits for a free slot",
    WaitReason.CAPACITY: "waits for capacity",
    WaitReason.PRICE: "waits for a lower price",
    WaitReason.BACKOFF: "waits for its next attempt",
    WaitReason.CHECKPOINT: "waits for its checkpoints",
    WaitReason.REFUSED: "waits for a permission",
    WaitReason.MARKET: "waits for spot capacity",
    WaitReason.MACHINE: "waits for its machine",
    WaitReason.MACHINE_LIMIT: "waits for a free machine",
    WaitReason.BUDGET: "waits for its budget",
}
_QUEUED = frozenset({WaitReason.LAUNCH, WaitReason.SLOT, WaitReason.MACHINE, WaitReason.MACHINE_LIMIT})


class CommitState(StrEnum):
    """What GitHub shows; a commit of which any context has `error` or `failure` is red."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    """The training failed."""
    ERROR = "error"
    """It was cancelled, or given up before it could run."""


_RAN = (JobState.RUNNING, JobState.STOPPING)
_ENDS = {
    JobState.SUCCEEDED: CommitState.SUCCESS,
    JobState.FAILED: CommitState.FAILURE,
    JobState.TIMED_OUT: CommitState.FAILURE,
    JobState.CANCELLED: CommitState.ERROR,
}
_END_WORDS = {JobState.TIMED_OUT: "out of time", JobState.CANCELLED: "cancelled"}
_COSTS = {
    CostBasis.PRICE: "{}",
    CostBasis.LIMIT: "at most {}",
    CostBasis.UNKNOWN: "{} and what has no price",
}


@dataclass(frozen=True, slots=True)
class CommitStatus:
    """A status of one context on one commit. The latest that was set of a context is the one that GitHub shows."""

    repository: str
    """OWNER/NAME."""
    sha: str
    state: CommitState
    context: str
    description: str


@dataclass(frozen=True, slots=True)
class ShownChange:
    """The change that a context of a commit shows, or is about to."""

    job_id: str
    at: datetime
    sent_at: datetime | None = None
    """When its status was last about to be sent."""

    def under_way_until(self, change: JobStateChange) -> datetime | None:
        """Return until when a request of another job may be taken, and then be shown instead of this change."""
        if self.sent_at is None or change.job_id == self.job_id:
            return None
        return self.sent_at + UNDER_WAY

    def is_followed_by(self, change: JobStateChange) -> bool:
        """Return whether a change may be shown after this one: of another job none that happened before.

        The end of a job that was retried may be sent after that of its retry, where GitHub took neither for a while.
        """
        return change.job_id == self.job_id or change.time >= self.at


def commit_status_of(change: JobStateChange) -> CommitStatus | None:
    """Return the status that a change gives the commit which started its job, None where no commit of GitHub is known.

    A job has one if a push, a workflow run, a release or a package that names its commit started it, or a job whose
    retry it is. Pushes to forks, whose webhooks are others, and refs that were deleted start none
    (core.triggers.events); a dispatch names a branch and no commit.
    """
    variables = change.trigger.variables
    repository = variables.get("RELAUNCH_GIT_REPOSITORY", "")
    sha = variables.get("RELAUNCH_GIT_SHA", "")
    if not _REPOSITORY.fullmatch(repository) or not _SHA.fullmatch(sha):
        return None
    context = CONTEXT_PREFIX + change.definition
    return CommitStatus(repository, sha, _state_of(change), context, _describe(change))


def _state_of(change: JobStateChange) -> CommitState:
    if change.state is JobState.FAILED and change.state_before not in _RAN:
        return CommitState.ERROR
    return _ENDS.get(change.state, CommitState.PENDING)


def _describe(change: JobStateChange) -> str:
    """Return the words of a status: what matters first, the ID of the job last."""
    if change.state.is_final:
        return _describe_end(change)
    if change.state is JobState.WAITING:
        return _wait(change)
    if change.state is JobState.STOPPING:
        return _with_reason("stopping", change, "")
    warning = f"; {_taken_away(change)}" if ChangedPart.WARNING in change.changed else ""
    return _fit(_place(change) + warning, change)


def _taken_away(change: JobStateChange) -> str:
    is_on_ec2 = Target(change.target).capabilities.runs_on_ec2
    return "EC2 takes the machine away" if is_on_ec2 else f"{change.target.upper()} takes the pod away"


def _describe_end(change: JobStateChange) -> str:
    if change.state is JobState.SUCCEEDED:
        return _fit(f"succeeded, {_cost(change)}", change)
    what = "given up" if _state_of(change) is CommitState.ERROR else "failed"
    return _with_reason(_END_WORDS.get(change.state, what), change, _cost(change))


def _wait(change: JobStateChange) -> str:
    reason = change.waiting_for or WaitReason.LAUNCH
    if reason is WaitReason.LAUNCH and change.attempt is not None:
        return _fit(f"queued for attempt {change.attempt + 1}", change)
    # The reason of a job that is next in a queue is what started it, or what ended its last attempt.
    return _fit(_WAITS[reason], change) if reason in _QUEUED else _with_reason(_WAITS[reason], change, "")


def _place(change: JobStateChange) -> str:
    """Return `running on g5.xlarge spot, attempt 2`."""
    verb = "running" if change.state is JobState.RUNNING else "starting"
    machine = change.machine
    names = () if machine is None else machine.kind
    place = f" on {' '.join(names)}" if names else ""
    attempt = f", attempt {change.attempt}" if change.attempt is not None and change.attempt > 1 else ""
    return f"{verb}{place}{attempt}"


def _cost(change: JobStateChange) -> str:
    cost = change.cost
    if cost.basis is CostBasis.UNKNOWN and cost.usd == 0:
        return "cost unknown"
    return _COSTS[cost.basis].format(write_usd(cost.usd))


def _with_reason(what: str, change: JobStateChange, cost: str) -> str:
    """Return `what: reason (cost)`; the reason gets what room the others leave."""
    after = f" ({cost})" if cost else ""
    reason = _public(change.reason)
    if not reason or reason == what:
        return _fit(what + after, change)
    room = MAX_DESCRIPTION - len(what) - len(": ") - len(after) - len(_named(change))
    return f"{what}: {cut(reason, room)}{after}{_named(change)}"


def _fit(text: str, change: JobStateChange) -> str:
    return cut(text, MAX_DESCRIPTION - len(_named(change))) + _named(change)


def _named(change: JobStateChange) -> str:
    """Return how the job is named at the end: nothing else of a status leads to it."""
    return f" · {change.job_id}"


def _public(reason: str) -> str:
    """Return a reason in one line, without what is nobody else's business."""
    return " ".join(_PRIVATE.sub(_HIDDEN, reason).split())
