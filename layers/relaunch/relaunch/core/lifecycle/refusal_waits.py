"""Waits for what somebody has to grant or mend: a permission, a credential, a role, a key, a bucket, a cluster.

IAM is eventually consistent ("Changes that I make are not always immediately visible", IAM User Guide): a refusal right
after a deployment is over within minutes. One that somebody has to do something about takes hours or days.

call refused
  ├─ by now for as long as a job is held back for it, and no try is due within hours ──▶ FAILED
  ├─ the call is free ──▶ again after 5 minutes, later every 30
  └─ it needs a machine of our own
       ├─ the machine is up, refused for less than MACHINE_KEPT ──▶ kept, and again after 1, 2, 4… minutes
       └─ else, and if its machines are of no use ──▶ released; another one is bought as a probe
                   15 minutes, 1, 4 and 24 hours after the first refusal, then daily; and no sooner than
                   the useless machines of all jobs with the revision let it: 15 minutes, 1 or 4 hours after the
                   third, fourth and later ones (core.offerings.capacity_memory, core.machines.starts)

What a refusal that may heal means for a job, and what to grant, in words.

The refused action, the resource and the caller are those of the error: "Troubleshoot access denied error messages" (IAM
User Guide), and "Authorization Overview" (Kubernetes).
"""

import re
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.jobs.effects import AdmitWaiting
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, Refusal, RefusedCall, Waiting, WaitReason
from relaunch.core.lifecycle.decision import Decision, end, try_again_at
from relaunch.core.lifecycle.long_waits import where_it_resumes
from relaunch.core.lifecycle.restart_policy import next_machine_at, useless_for_all, with_useless_machine
from relaunch.core.records import dataclass

UNTRAINED_WAIT = timedelta(hours=24)
"""How long a job that never trained is held back: it loses nothing."""
TRAINED_WAIT = timedelta(days=14)
"""How long a job that has trained is held back; `retry` resumes from its checkpoint after that."""
LAST_TRY_WITHIN = timedelta(hours=6)
"""How much longer a job is held back whose next try is known: the last useless machines are tried so far apart."""
MACHINE_KEPT = timedelta(minutes=10)
"""How long a machine that is up is kept for a call that is refused.

Longer than IAM takes for a change, of which users report up to five minutes, and about what another machine is paid for
before its task and after it: it registers after three to five minutes, and terminates within six.
"""
PROBES_AFTER = (timedelta(minutes=15), timedelta(hours=1), timedelta(hours=4))
"""When after the first refusal a machine is bought to try again; after that every PROBE_INTERVAL."""
PROBE_INTERVAL = timedelta(hours=24)
# A refusal is the same one as the last if nobody can have seen in between that it was over: there is a try every day,
# which may have to wait for a machine.
_ANOTHER_AFTER = 2 * PROBE_INTERVAL
# A permission is granted within minutes or within days: every wait is as long as all before it together.
_FIRST_KEPT_WAIT = timedelta(minutes=1)
_FIRST_WAIT = timedelta(minutes=5)
_LONGEST_WAIT = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class NextTry:
    """When a refused call is tried again, and whether a machine that is up is kept for that."""

    until: datetime
    keeps_machine: bool = False


def next_try(refusal: Refusal, *, has_trained: bool, is_bought: bool, is_up: bool = True) -> NextTry | None:
    """Return when a call is tried again that was refused just now, None if the job is not held back any longer.

    `is_bought`: a try costs a machine; `is_up`: one is up that may be kept for the next one.
    """
    waited = refusal.at - refusal.since
    limit = wait_limit(has_trained=has_trained)
    if waited >= limit:
        return None
    keeps_machine = is_bought and is_up and waited < MACHINE_KEPT
    if keeps_machine:
        until = min(waited + max(waited, _FIRST_KEPT_WAIT), MACHINE_KEPT)
    else:
        until = _next_probe(waited) if is_bought else waited + min(max(waited, _FIRST_WAIT), _LONGEST_WAIT)
    # The last try is at the limit: what was granted since the one before is not overlooked.
    return NextTry(refusal.since + min(until, limit), keeps_machine)


def wait_limit(*, has_trained: bool) -> timedelta:
    """Return how long a job is held back by a refusal."""
    return TRAINED_WAIT if has_trained else UNTRAINED_WAIT


def _next_probe(waited: timedelta) -> timedelta:
    daily = (waited // PROBE_INTERVAL + 1) * PROBE_INTERVAL
    return next((each for each in PROBES_AFTER if each > waited), daily)


def with_refusal(job: Job, call: RefusedCall, now: datetime) -> Job:
    """Return the job with a call that was refused just now."""
    known = job.refusals.get(call)
    is_another = known is None or now - known.at > _ANOTHER_AFTER
    queued = job.queued_time(now).total_seconds()
    since = now
    if known is not None and not is_another:
        # Nobody could try it meanwhile.
        since = min(known.since + timedelta(seconds=max(queued - known.queued_seconds, 0.0)), now)
    return replace(job, refusals={**job.refusals, call: Refusal(since, now, queued)})


def wait_until_granted(  # noqa: PLR0913 - all of them named at every call
    job: Job,
    call: RefusedCall,
    reason: str,
    now: datetime,
    *,
    machine_id: str = "",
    may_keep: bool = True,
    pause: timedelta | None = None,
    refused_at: datetime | None = None,
    tried_at: datetime | None = None,
) -> Decision:
    """Let a job wait for what was refused just now, or at `refused_at`, or fail it after it was held back long enough.

    `machine_id` is the machine of our own that is up for it, empty if it needs none; the start of a task needs any
    machine. `may_keep`: the machine is not known to be gone. `pause` is how long a free call pauses, if the caller
    knows better, `tried_at` when a machine may be bought again: then is the last try. The wait may take days, so it
    leaves the slot to others, unless it keeps its machine.
    """
    job = with_refusal(job, call, refused_at or now)
    has_trained = job.totals.first_started_at is not None
    # The next start of a task is a try on another machine: what refused it may be kept from this one only.
    is_up = bool(machine_id) and may_keep and call is not RefusedCall.START
    takes_machine = call is RefusedCall.START or (call is RefusedCall.USEFUL_MACHINE and pause is None)
    is_bought = bool(machine_id) or takes_machine
    refusal = job.refusals[call]
    following = next_try(refusal, has_trained=has_trained, is_bought=is_bought, is_up=is_up)
    latest = refusal.since + wait_limit(has_trained=has_trained) + LAST_TRY_WITHIN
    if following is None and tried_at is not None and now < tried_at <= latest:
        following = NextTry(tried_at)
    is_kept = following is not None and following.keeps_machine
    given_up = (useless_for_all(job, machine_id, reason, now),) if machine_id and not is_kept else ()
    if following is None:
        limit = "14 days" if has_trained else "24 hours"
        detail = f"refused for {limit}: {reason}{where_it_resumes(job)}"
        return end(job, JobState.FAILED, now, event="refused for too long", detail=detail, before=given_up)
    if is_up and not following.keeps_machine:
        job = with_useless_machine(job, now)
    until = following.until if pause is None else now + pause
    until = max(until, next_machine_at(job, now)) if is_bought and not following.keeps_machine else until
    reason_to_wait = WaitReason.CHECKPOINT if call is RefusedCall.CHECKPOINT else WaitReason.REFUSED
    if following.keeps_machine:
        return try_again_at(replace(job, machine_id=machine_id), reason_to_wait, reason, now, until)
    released = try_again_at(replace(job, has_slot=False, machine_id=""), reason_to_wait, reason, now, until)
    return without_slot(job, replace(released, job=replace(released.job, pending=(*given_up, *released.job.pending))))


def lose_kept_machine(job: Job, waiting: Waiting, now: datetime) -> Decision:
    """Wait for the first probe of a job that has lost the machine that was kept."""
    since = latest_refusal(job, now).since
    lost = with_useless_machine(replace(job, has_slot=False), now)
    until = max(since + PROBES_AFTER[0], next_machine_at(lost, now))
    return without_slot(job, try_again_at(lost, waiting.reason, waiting.detail, now, until))


def without_slot(before: Job, decision: Decision) -> Decision:
    """Return the decision, which gives the slot that the job had to the next one."""
    if not before.has_slot:
        return decision
    released = replace(decision.job, pending=(*decision.job.pending, AdmitWaiting()))
    return replace(decision, job=released, release_slot=True)


_DOCTOR = "`relaunch doctor` checks what the stack may do; docs/deploy.md says which role needs what"
_AWS = (
    r"(?:User: )(?P<user>\S+) is not authorized to perform: (?P<action>[\w-]+:\w+)(?: on resource: (?P<resource>\S+))?"
)
_ROLE = r"assumed-role/(?P<role>[^/]+)/"
_KUBERNETES = (
    r'User "(?P<user>[^"]+)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)"'
    r'(?: in API group "[^"]*")?(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_NAMESPACE = r'namespaces "(?P<namespace>[^"]+)" not found'
_CREDENTIALS = r"HTTP 401|kubeconfig: "
_RENEWAL = (
    "the cluster does not take the credentials: renew the kubeconfig in its secret; a token of `kubectl create token` "
    "is valid for an hour unless `--duration` says longer, one of a Secret of type kubernetes.io/service-account-token "
    "until that is deleted (docs/kubernetes.md)"
)
CHECKPOINT_GRANTS = (
    "name the bucket in the stack's CheckpointBuckets: launch_attempt's role then may list and read it",
    "objects under a KMS key of your own: name it in the stack's CheckpointKeyArns, for kms:Decrypt; the policy of "
    "the key must let the role use it too",
    "a bucket policy, or a bucket or key of another account, must let the role in as well",
)
"""What lets the application read checkpoints."""


_USELESS_MACHINES = (
    "its machines are launched, and none is of use: `relaunch explain` has what EC2 and the cluster said of each",
    "they do not register: the subnet needs a way to the cluster (a NAT gateway or endpoints), the image an "
    "agent that joins it; a large instance type may need longer (MachineRegistrationMinutes): docs/machines.md",
    "`Client.InternalError`: the disk's key; the role of request_machine needs a grant of the account's default key",
    "the cluster places nothing: compare the task definition's constraints, ports and sizes with the instance type",
    "once it is mended, `relaunch cancel` and `relaunch retry` try at once",
)
"""What to look at if a job's machines never run its task."""


_OF_THE_TASK = (
    "a start is granted by the task's own roles (executionRoleArn and taskRoleArn of its task definition), which "
    "template.yaml does not make"
)
_ASSUMED = "let ecs-tasks.amazonaws.com assume the role: its trust policy says who may, and an SCP may forbid it"
_PULLED = (
    "let the execution role pull the image: ecr:GetAuthorizationToken, and ecr:BatchGetImage and "
    "ecr:GetDownloadUrlForLayer on its repository, whose policy must allow another account; a registry elsewhere needs "
    "`repositoryCredentials`, and a password that is still valid"
)
_SAME_ON_ALL = (
    "its machines did not start it one after the other: see what they have in common, which is their image and its "
    "driver (`relaunch amis`), the disk (MachineDiskGiB or `disk`), the task definition, and the way to the registry"
)
_POD = "`kubectl describe pod` says why it does not start: its imagePullSecrets, secrets, volumes, or the nodes' driver"
_PODS_LET_IN = (
    (
        r"exceeded quota: (?P<name>[^,\s]+)",
        "raise the ResourceQuota {name}, or wait until others in the namespace end: `kubectl describe resourcequota` "
        "shows who uses it",
    ),
    (
        r'serviceaccount "(?P<name>[^"]+)" not found',
        "`kubectl create serviceaccount {name}` in the namespace, or name another one in `kubernetes.service_account`",
    ),
    (r"no PriorityClass with name (?P<name>\S+)", "create the PriorityClass {name}"),
    (r'failed calling webhook "(?P<name>[^"]+)"', "the webhook {name} does not answer: see to it"),
)
_PODS_REFUSED = (
    "`kubectl describe job` has the cluster's words: the namespace refuses the pod of the Job, which it took"
)
_AT_ONCE = (
    "it goes on by its next probe, or that of another job with its task definition; once it is mended, `relaunch "
    "cancel` and `relaunch retry` try at once, unless several of its machines were of no use in the last hours"
)
_START_WORDS = (
    (r"(?i)unable to assume|execution (role )?credentials", _ASSUMED),
    (
        r"(?i)basic auth credentials|authorization token|unauthorized: |403|registry auth|ecr auth|"
        r"registry credentials|ecr credentials|AuthorizationData",
        _PULLED,
    ),
)


def what_to_look_at(job: Job, reason: str) -> tuple[str, ...]:
    """Return what somebody can do about what was refused last, by its words, or about machines of no use."""
    if _latest_call(job) is RefusedCall.POD:
        return what_lets_pods_in(reason)
    if _latest_call(job) is RefusedCall.START:
        return (*((_POD,) if job.definition.target.capabilities.runs_pods else _about_start(reason)), _AT_ONCE)
    return (*_USELESS_MACHINES, _DOCTOR) if lacks_useful_machine(job) else what_to_grant(reason)


def what_lets_pods_in(reason: str) -> tuple[str, ...]:
    """Return what somebody can do about a pod that the cluster refuses, by its words."""
    found = ((re.search(words, reason), advice) for words, advice in _PODS_LET_IN)
    return (*(advice.format(name=match["name"]) for match, advice in found if match), _PODS_REFUSED)


def _about_start(reason: str) -> tuple[str, ...]:
    """Return what somebody can do about a task that does not start, by the words of the agent."""
    if found := re.search(_AWS, reason):
        return (_describe_grant(found, reason) or _describe_deny(found), _OF_THE_TASK)
    return (next((advice for words, advice in _START_WORDS if re.search(words, reason)), _SAME_ON_ALL),)


def lacks_useful_machine(job: Job) -> bool:
    """Return whether no machine of the job was of use, when it was refused last."""
    return _latest_call(job) is RefusedCall.USEFUL_MACHINE


def _latest_call(job: Job) -> RefusedCall | None:
    return max(job.refusals, key=lambda call: job.refusals[call].at, default=None)


def what_to_grant(reason: str) -> tuple[str, ...]:
    """Return what somebody can grant or mend for a refused call, from the words of its error, and who checks that."""
    return (*_from_its_words(reason), _DOCTOR)


def _from_its_words(reason: str) -> tuple[str, ...]:
    if found := re.search(_AWS, reason):
        grant = _describe_grant(found, reason)
        return (
            f"{grant}: template.yaml does, so deploy again or see what took it away"
            if grant
            else _describe_deny(found),
        )
    if found := re.search(_KUBERNETES, reason):
        where = f" in the namespace {found['namespace']}" if found["namespace"] else ""
        granting = "`kubectl apply -f infrastructure/kubernetes/role.yaml` with this whole name in it"
        return (f"let {found['user']} {found['verb']} {found['resource']}{where}: {granting}",)
    if found := re.search(_NAMESPACE, reason):
        return (f"`kubectl create namespace {found['namespace']}`, and apply infrastructure/kubernetes/role.yaml",)
    return (_RENEWAL,) if re.search(_CREDENTIALS, reason) else ()


def _describe_grant(found: re.Match[str], reason: str) -> str:
    """Return what to grant to whom, empty if it is denied explicitly."""
    return "" if "explicit deny" in reason else f"grant {_whom_what(found)}"


def _describe_deny(found: re.Match[str]) -> str:
    return f"something denies {_whom_what(found)} explicitly, which no grant overrides: lift that"


def _whom_what(found: re.Match[str]) -> str:
    role = re.search(_ROLE, found["user"])
    to = f"the role {role['role']}" if role else found["user"]
    on = f" on {found['resource'].rstrip('.,;')}" if found["resource"] else ""
    return f"{to} {found['action']}{on}"


def latest_refusal(job: Job, now: datetime) -> Refusal:
    """Return the refusal of the call that was refused last; one of `now` for a job of an earlier version."""
    return max(job.refusals.values(), key=lambda each: each.at, default=Refusal(now, now))


def describe_limit(job: Job, now: datetime) -> str:
    """Return until when the job is held back by what is refused, and what ends it sooner."""
    has_trained = job.totals.first_started_at is not None
    limit = TRAINED_WAIT if has_trained else UNTRAINED_WAIT
    ends_at = latest_refusal(job, now).since + limit
    then = "then it fails, and `relaunch retry` resumes from its checkpoint" if has_trained else "then it fails"
    sooner = f"a deadline or `relaunch cancel {job.job_id}` ends it sooner"
    return f"that goes on until {ends_at:%Y-%m-%d %H:%M} UTC, {then}; {sooner}"
