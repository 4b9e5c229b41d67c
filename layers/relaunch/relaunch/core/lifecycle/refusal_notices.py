"""What a refusal that may heal means for a job, and what to grant, in words.

The refused action, the resource and the caller are those of the error: "Troubleshoot access denied error messages" (IAM
User Guide), and "Authorization Overview" (Kubernetes).
"""

import re
from datetime import datetime

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import Refusal, RefusedCall
from relaunch.core.lifecycle.refusal_waits import TRAINED_WAIT, UNTRAINED_WAIT

_DOCTOR = "`relaunch doctor` checks what the stack may do; docs/deploy.md says which role needs what"
_AWS = re.compile(
    r"(?:User: )(?P<user>\S+) is not authorized to perform: (?P<action>[\w-]+:\w+)(?: on resource: (?P<resource>\S+))?"
)
_ROLE = re.compile(r"assumed-role/(?P<role>[^/]+)/")
_KUBERNETES = re.compile(
    r'User "(?P<user>[^"]+)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)"'
    r'(?: in API group "[^"]*")?(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_NAMESPACE = re.compile(r'namespaces "(?P<namespace>[^"]+)" not found')
_CREDENTIALS = re.compile(r"HTTP 401|kubeconfig: ")
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
_AT_ONCE = (
    "it goes on by its next probe, or that of another job with its task definition; once it is mended, `relaunch "
    "cancel` and `relaunch retry` try at once, unless several of its machines were of no use in the last hours"
)
_START_WORDS = (
    (re.compile(r"(?i)unable to assume|execution (role )?credentials"), _ASSUMED),
    (
        re.compile(
            r"(?i)basic auth credentials|authorization token|unauthorized: |403|registry auth|ecr auth|"
            r"registry credentials|ecr credentials|AuthorizationData"
        ),
        _PULLED,
    ),
)


def what_to_look_at(job: Job, reason: str) -> tuple[str, ...]:
    """Return what somebody can do about what was refused last, by its words, or about machines of no use."""
    if _latest_call(job) is RefusedCall.START:
        return (*((_POD,) if job.definition.target.capabilities.runs_pods else _about_start(reason)), _AT_ONCE)
    return (*_USELESS_MACHINES, _DOCTOR) if lacks_useful_machine(job) else what_to_grant(reason)


def _about_start(reason: str) -> tuple[str, ...]:
    """Return what somebody can do about a task that does not start, by the words of the agent."""
    if found := _AWS.search(reason):
        return (_describe_grant(found, reason) or _describe_deny(found), _OF_THE_TASK)
    return (next((advice for words, advice in _START_WORDS if words.search(reason)), _SAME_ON_ALL),)


def lacks_useful_machine(job: Job) -> bool:
    """Return whether no machine of the job was of use, when it was refused last."""
    return _latest_call(job) is RefusedCall.USEFUL_MACHINE


def _latest_call(job: Job) -> RefusedCall | None:
    return max(job.refusals, key=lambda call: job.refusals[call].at, default=None)


def what_to_grant(reason: str) -> tuple[str, ...]:
    """Return what somebody can grant or mend for a refused call, from the words of its error, and who checks that."""
    return (*_from_its_words(reason), _DOCTOR)


def _from_its_words(reason: str) -> tuple[str, ...]:
    if found := _AWS.search(reason):
        grant = _describe_grant(found, reason)
        return (
            f"{grant}: template.yaml does, so deploy again or see what took it away"
            if grant
            else _describe_deny(found),
        )
    if found := _KUBERNETES.search(reason):
        where = f" in the namespace {found['namespace']}" if found["namespace"] else ""
        granting = "`kubectl apply -f infrastructure/kubernetes/role.yaml`"
        return (f"let {found['user']} {found['verb']} {found['resource']}{where}: {granting}",)
    if found := _NAMESPACE.search(reason):
        return (f"`kubectl create namespace {found['namespace']}`, and apply infrastructure/kubernetes/role.yaml",)
    return (_RENEWAL,) if _CREDENTIALS.search(reason) else ()


def _describe_grant(found: re.Match[str], reason: str) -> str:
    """Return what to grant to whom, empty if it is denied explicitly."""
    return "" if "explicit deny" in reason else f"grant {_whom_what(found)}"


def _describe_deny(found: re.Match[str]) -> str:
    return f"something denies {_whom_what(found)} explicitly, which no grant overrides: lift that"


def _whom_what(found: re.Match[str]) -> str:
    role = _ROLE.search(found["user"])
    to = f"the role {role['role']}" if role else found["user"].rstrip(".,;")
    on = f" on {found['resource'].rstrip('.,;')}" if found["resource"] else ""
    return f"{to} {found['action']}{on}"


def latest_refusal(job: Job, now: datetime) -> Refusal:
    """Return the refusal of the call that was refused last; one of `now` for a job of an earlier version."""
    return max(job.refusals.values(), key=lambda each: each.at, default=Refusal(now, now))


def describe_limit(job: Job, now: datetime) -> str:
    """Return until when the job is held back by what is refused, and what ends it sooner."""
    has_trained = job.first_started_at is not None
    limit = TRAINED_WAIT if has_trained else UNTRAINED_WAIT
    ends_at = latest_refusal(job, now).since + limit
    then = "then it fails, and `relaunch retry` resumes from its checkpoint" if has_trained else "then it fails"
    sooner = f"a deadline or `relaunch cancel {job.job_id}` ends it sooner"
    return f"that goes on until {ends_at:%Y-%m-%d %H:%M} UTC, {then}; {sooner}"
