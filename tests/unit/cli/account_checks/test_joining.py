"""From the console of an instance and what is known of it to what keeps it from the cluster."""

from datetime import timedelta

import pytest

from fakes.machines_stack import deploy_machines
from relaunch.core.checks import Verdict
from relaunch_cli.account_checks.joining import Cause, InstanceFacts, check_instance, cluster_of, find_cause

FACTS = InstanceFacts("i-0abc", timedelta(minutes=9), cluster="training")
BOOT = (
    "[    0.000000] Linux version 6.1.115-126.197.amzn2023.x86_64 (mockbuild@ip-10-0-49-86)\n"
    "\x1b[0;32m[  OK  ]\x1b[0m Started \x1b[0;1;39msystemd-networkd.service\x1b[0m - Network Configuration.\n"
    "[   11.862100] cloud-init[1656]: Cloud-init v. 22.2.2 running 'modules:final' at Mon, 23 Nov 2026.\n"
)
END = "[   13.1] cloud-init[1656]: Cloud-init v. 22.2.2 finished at Mon, 23 Nov 2026 10:00:13 +0000. Datasource Ec2.\n"
AGENT = (
    "         Starting \x1b[0;1;39mecs.service\x1b[0m - Amazon Elastic Container Service - container agent...\n"
    "[\x1b[0;32m  OK  \x1b[0m] Started \x1b[0;1;39mecs.service\x1b[0m - Amazon Elastic Container Service.\n"
)
CONSOLES = {
    "user data ended with an error": (
        BOOT
        + "[   12.9] cloud-init[1656]: /var/lib/cloud/instance/scripts/part-001: line 41: CLUSTER: unbound variable\n"
        "[   12.9] cloud-init[1656]: 2026-11-23 10:00:12,9 - cc_scripts_user.py[WARNING]: Failed to run module "
        "scripts-user (scripts in /var/lib/cloud/instance/scripts)\n" + END,
        Cause.USER_DATA,
        "line 41: CLUSTER: unbound variable",
    ),
    "script failed": (
        BOOT + "[   12.9] cloud-init[1656]: 2026-11-23 10:00:12,920 - subp.py[DEBUG]: Failed running "
        "/var/lib/cloud/instance/scripts/part-001 [1]\n" + END,
        Cause.USER_DATA,
        "Failed running",
    ),
    "no way to the repository": (
        BOOT + "[  133.0] cloud-init[1656]: Curl error (28): Timeout was reached for "
        "https://al2023-repos-us-east-1-de612dc2.s3.dualstack.us-east-1.amazonaws.com/core/mirrors/ []\n" + END + AGENT,
        Cause.NETWORK,
        "Curl error (28)",
    ),
    "agent cannot reach ECS": (
        BOOT + END + AGENT + "[  200.1] amazon-ecs-agent: error registering: Post "
        '"https://ecs.us-east-1.amazonaws.com/": dial tcp 52.94.1.2:443: i/o timeout\n',
        Cause.NETWORK,
        "i/o timeout",
    ),
    "no name is resolved": (
        BOOT + "curl: (6) Could not resolve host: ecs.us-east-1.amazonaws.com\n" + END + AGENT,
        Cause.NETWORK,
        "(6) Could not resolve host",
    ),
    "no network at all": (
        BOOT + "[\x1b[0;1;31mFAILED\x1b[0m] Failed to start \x1b[0;1;39msystemd-networkd-wait-online.service\x1b[0m - "
        "Wait for Network to be Configured.\n" + END,
        Cause.NETWORK,
        "systemd-networkd-wait-online",
    ),
    "role may not register": (
        BOOT + END + AGENT + "amazon-ecs-agent: AccessDeniedException: User: arn:aws:sts::1:assumed-role/m/i-0abc "
        "is not authorized to perform: ecs:RegisterContainerInstance on resource: cluster/training\n",
        Cause.ROLE,
        "ecs:RegisterContainerInstance",
    ),
    "no credentials": (
        BOOT + END + AGENT + "amazon-ecs-agent: NoCredentialProviders: no valid providers in chain. Deprecated.\n",
        Cause.ROLE,
        "NoCredentialProviders",
    ),
    "agent fails": (
        BOOT + END + "[\x1b[0;1;31mFAILED\x1b[0m] Failed to start \x1b[0;1;39mecs.service\x1b[0m - Amazon Elastic "
        "Container Service - container agent.\n",
        Cause.AGENT,
        "Failed to start ecs.service",
    ),
    "Docker fails, and the agent with it": (
        BOOT + "[DEPEND] Dependency failed for ecs.service - Amazon Elastic Container Service.\n" + END,
        Cause.AGENT,
        "Dependency failed",
    ),
    "an image without an agent": (BOOT + END, Cause.AGENT, "is it an image of ECS?"),
    "a driver that fails": (
        BOOT + END + AGENT + "[   45.2] NVRM: RmInitAdapter failed! (0x26:0x56:1474)\n",
        Cause.AGENT,
        "RmInitAdapter failed",
    ),
    "the watchdog ends it": (
        BOOT + END + AGENT + "relaunch-watchdog: powering off: not registered 900 s after the boot\n",
        Cause.UNKNOWN,
        "not registered 900 s after the boot",
    ),
    "a tag that instance metadata does not have": (
        BOOT + "curl: (28) Failed to connect to 169.254.169.254 port 80: Connection timed out\n" + END + AGENT,
        Cause.UNKNOWN,
        "does not say",
    ),
    "a quiet boot": (
        "cloud-init[1656]: Cloud-init v. 22.2.2 finished at Mon, 23 Nov 2026 10:00:13 +0000.\n",
        Cause.UNKNOWN,
        "does not say",
    ),
    "nothing yet": ("", Cause.UNKNOWN, "does not say"),
}  # fmt: skip


@pytest.mark.parametrize("case", CONSOLES)
def test_the_console_tells_the_cause(case: str) -> None:
    console, cause, evidence = CONSOLES[case]

    found = find_cause(console, FACTS, "training")

    assert (found.cause, evidence in found.evidence) == (cause, True)
    assert "\x1b" not in found.evidence


@pytest.mark.parametrize(
    ("facts", "cause", "evidence"),
    [
        ({"role_problem": "it has no instance profile"}, Cause.ROLE, "no instance profile"),
        ({"barrier": "it has no route to 0.0.0.0/0"}, Cause.NETWORK, "no route"),
        ({"cluster": "default"}, Cause.USER_DATA, "the cluster default, not training"),
        ({"cluster": ""}, Cause.USER_DATA, "names no cluster"),
    ],
)
def test_a_fact_is_surer_than_the_console(facts: dict[str, str], cause: Cause, evidence: str) -> None:
    broken = InstanceFacts("i-0abc", timedelta(minutes=9), **{"cluster": "training", **facts})
    console, _, _ = CONSOLES["agent fails"]

    found = find_cause(console, broken, "training")

    assert (found.cause, evidence in found.evidence) == (cause, True)


def test_user_data_that_could_not_be_read_is_no_cause() -> None:
    unread = InstanceFacts("i-0abc", timedelta(minutes=9), cluster=None)

    assert find_cause(BOOT + END + AGENT, unread, "training").cause is Cause.UNKNOWN


def test_the_cluster_is_found_in_the_user_data_of_our_machines() -> None:
    assert cluster_of(deploy_machines().user_data("gpu")) == "training"


@pytest.mark.parametrize(
    ("user_data", "cluster"),
    [
        ("#!/bin/bash\necho ECS_CLUSTER=vision >> /etc/ecs/ecs.config\n", "vision"),
        ("#!/bin/bash\ncat <<END >> /etc/ecs/ecs.config\nECS_CLUSTER='vision'\nEND\n", "vision"),
        ("#!/bin/bash\necho ECS_CLUSTER=$CLUSTER\n", ""),
        ("", ""),
    ],
)
def test_the_cluster_is_found_in_other_user_data(user_data: str, cluster: str) -> None:
    assert cluster_of(user_data) == cluster


def test_an_instance_that_starts_is_no_problem() -> None:
    check = check_instance(InstanceFacts("i-0abc", timedelta(minutes=4)), None, "training")

    assert (check.verdict, check.text) == (Verdict.OK, "it starts, for 4 minutes")


def test_a_console_that_could_not_be_read_leaves_the_cause_unknown() -> None:
    check = check_instance(FACTS, None, "training")

    assert check.verdict is Verdict.UNKNOWN
    assert check.to_do == "grant ec2:GetConsoleOutput"
