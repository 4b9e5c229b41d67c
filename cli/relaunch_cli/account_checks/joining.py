"""Why an instance that runs has not joined the cluster: its role, the network, its user data or the agent.

Facts come first: an instance without a role or a way to ECS never joins, whatever its console says. Of its console the
lines of cloud-init, systemd and our watchdog are read; the agent's own log is a file, and only what systemd says of it
is on the console. Sources: ecs.service and amazon-ecs-init of the agent's repository, cloud-init's modules, and users'
reports of instances that did not register.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from relaunch.core.checks import Check, is_ok, problem, unknown

# From launch to registration: 24 to 77 s were measured by others; drivers are built for minutes on some images.
STARTING = timedelta(minutes=5)


class Cause(StrEnum):
    """What keeps an instance from the cluster."""

    ROLE = "role"
    NETWORK = "network"
    USER_DATA = "user data"
    AGENT = "agent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class InstanceFacts:
    """An instance that runs: how long, and what keeps it from ECS, empty if nothing is known to.

    `cluster` is the one that its user data names, empty if it names none, None if the user data could not be read.
    """

    instance_id: str
    age: timedelta
    role_problem: str = ""
    barrier: str = ""
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause, and what shows it."""

    cause: Cause
    evidence: str


_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# In the order of what follows from what: without credentials or a network user data may fail too.
_SIGNS = tuple(
    (cause, re.compile(pattern, re.IGNORECASE))
    for cause, pattern in (
        (
            Cause.ROLE,
            r"not authorized to perform: ecs:|NoCredentialProviders|no (?:valid|EC2 IMDS) .*(?:role|credential)",
        ),
        (Cause.ROLE, r"unable to locate credentials|AccessDenied(?:Exception)?\b.*(?:ecs|RegisterContainerInstance)"),
        (
            Cause.NETWORK,
            r"(?:i/o timeout|network is unreachable|no such host|connection timed out|could not resolve host"
            r"|temporary failure in name resolution|curl error \((?:6|7|28)\)|curl: \((?:6|7|28)\))",
        ),
        (Cause.NETWORK, r"failed to start .*(?:systemd-networkd-wait-online|wait for network)"),
        (
            Cause.USER_DATA,
            r"failed running /var/lib/cloud/instance/scripts/|failed to run module scripts.user|"
            r"modules-final.*(?:failed|traceback)|unhandled non-multipart .*userdata|part-\d+: line \d+: ",
        ),
        (
            Cause.AGENT,
            r"failed to start .*(?:ecs\.service|elastic container service|docker\.service|docker application)|"
            r"dependency failed for .*(?:ecs\.service|elastic container service)|"
            r"unit ecs\.service (?:not found|could not be found)|ecs\.service: (?:failed|start request repeated)",
        ),
        (Cause.AGENT, r"NVRM: (?:gpu .*fallen off the bus|rminitadapter failed)|nvidia-smi has failed"),
    )
)
# Messages of the instance metadata service are no way to ECS: a tag that is missing is answered 404.
_METADATA = "169.254.169.254"
_FINISHED = re.compile(r"cloud-init v\. \S+ finished at", re.IGNORECASE)
_AGENT_STARTED = re.compile(r"(?:started|starting) .*(?:ecs\.service|elastic container service)", re.IGNORECASE)
# A kernel that boots with `quiet` lets systemd show failures alone: then what is not shown says nothing.
_SHOWS_UNITS = re.compile(r"\[\s*OK\s*\]\s*(?:Started|Reached|Finished)")
_GAVE_UP = re.compile(r"relaunch-watchdog: powering off: (?P<reason>.*)")
_CLUSTER = re.compile(r"\b(?:ECS_)?CLUSTER=[\"']?(?P<name>[A-Za-z0-9_-]+)")


def cluster_of(user_data: str) -> str:
    """Return the cluster that user data names, the last one if it names several; empty if none."""
    found = _CLUSTER.findall(user_data)
    return found[-1] if found else ""


def find_cause(console: str, facts: InstanceFacts, cluster: str) -> Finding:
    """Return why an instance has not joined a cluster, by what is known of it and the text of its console."""
    if facts.role_problem:
        return Finding(Cause.ROLE, facts.role_problem)
    if facts.barrier:
        return Finding(Cause.NETWORK, facts.barrier)
    if facts.cluster is not None and facts.cluster != cluster:
        named = (
            f"its user data names the cluster {facts.cluster}" if facts.cluster else "its user data names no cluster"
        )
        return Finding(Cause.USER_DATA, f"{named}, not {cluster}")
    lines = [_ESCAPES.sub("", line).strip() for line in console.splitlines()]
    for cause, sign in _SIGNS:
        for line in lines:
            if sign.search(line) and _METADATA not in line:
                return Finding(cause, f"its console says: {line}")
    is_told = any(map(_FINISHED.search, lines)) and any(map(_SHOWS_UNITS.search, lines))
    if is_told and not any(map(_AGENT_STARTED.search, lines)):
        return Finding(Cause.AGENT, "user data has ended, and nothing started the agent: is it an image of ECS?")
    gave_up = next((found["reason"] for found in map(_GAVE_UP.search, lines) if found), "")
    return Finding(Cause.UNKNOWN, f"it powers itself off: {gave_up}" if gave_up else "its console does not say")


_MENDS = {
    Cause.ROLE: "relaunch deploy, which sets the role of machines; of a capacity provider: the profile of its template",
    Cause.NETWORK: "give its subnet a way to ECS (docs/machines.md), or: relaunch deploy MachineSubnets=...",
    Cause.USER_DATA: "relaunch deploy, which sets user data; of a capacity provider: the user data of its template",
    Cause.AGENT: "relaunch deploy GpuImageId=resolve:ssm:... with an image of `relaunch amis`",
}


def check_instance(facts: InstanceFacts, console: str | None, cluster: str) -> Check:
    """Check an instance that is not in the cluster; without a console it could not be read."""
    name = f"instance {facts.instance_id}"
    minutes = facts.age.total_seconds() / 60
    if facts.age < STARTING:
        return is_ok(name, f"it starts, for {minutes:.0f} minutes")
    finding = find_cause(console or "", facts, cluster)
    text = f"it runs for {minutes:.0f} minutes and has not joined {cluster}: {finding.cause}: {finding.evidence}"
    if finding.cause is not Cause.UNKNOWN:
        return problem(name, text, _MENDS[finding.cause])
    if console is None:
        return unknown(
            name, f"it runs for {minutes:.0f} minutes and has not joined {cluster}", "grant ec2:GetConsoleOutput"
        )
    look = f"aws ec2 get-console-output --latest --output text --instance-id {facts.instance_id}"
    return problem(name, text, f"{look}; then end it: aws ec2 terminate-instances --instance-ids {facts.instance_id}")
