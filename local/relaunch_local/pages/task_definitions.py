"""Generates docs/task-definitions.md from the verdicts on the members of task definitions.

Run `python -m relaunch_local.pages.task_definitions docs/task-definitions.md`.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from relaunch.core.task_definitions import host_access
from relaunch.core.task_definitions.member import Member, Verdict
from relaunch.core.task_definitions.verdicts import MEMBERS
from relaunch_local.pages.transitions import section

_HEAD = """\
# What Relaunch reads of a task definition

<!-- Written by `python -m relaunch_local.pages.task_definitions docs/task-definitions.md` from
relaunch.core.task_definitions.verdicts. -->

ECS decides by a task definition where its tasks may run. Relaunch buys the machine before ECS decides, so it reads
what ECS would: each member of
[RegisterTaskDefinition](https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_RegisterTaskDefinition.html)
has one of four verdicts, and a test holds the table to the model of the AWS SDK.

Values are refused by `relaunch apply`, and again when a job is accepted, for a newer revision may have been
registered since. Warnings are notices of `relaunch apply` and `relaunch plan`.

## Placement constraints

`memberOf` expressions are evaluated for each offering, in the [cluster query
language](https://docs.aws.amazon.com/AmazonECS/latest/developerguide/cluster-query-language.html); `relaunch plan
--rejected` shows what they rule out (`placement-constraints`). Known before a machine is bought are
`ecs.instance-type`, `ecs.availability-zone`, `ecs.cpu-architecture`, `ecs.os-type`, `ecs.os-family` and
`agentConnected`. What depends on anything else (`ecs.ami-id`, `ecs.subnet-id`, `ecs.vpc-id`, custom attributes,
`agentVersion`, `ec2InstanceId`, `registeredAt`, `runningTasksCount`, `task:group`) is never bought for: machines of
the stack's own are rejected. Instances of a capacity provider are the user's, and may satisfy it: they are kept,
with a notice. The same holds of regular expressions that Java may read otherwise, and of attributes that ECS
requires for a log driver, a volume driver or a security option.
"""

_TITLES = {
    Verdict.READ: "Read: into selection or into the launch",
    Verdict.REFUSED: "Refused: values that Relaunch cannot run",
    Verdict.WARNED: "Warned of",
    Verdict.HARMLESS: "Harmless: passed on to ECS as they are",
}


def render_page() -> str:
    """Return the page."""
    verdicts = (line for verdict in Verdict for line in _section(verdict))
    return "\n".join([_HEAD, *_host_access(), *verdicts]).rstrip() + "\n"


def _host_access() -> Iterator[str]:
    rows = ((f"`{path}`", values) for path, values, _ in host_access.MEMBERS)
    title = f"Refused unless the stack has {host_access.PARAMETER}=on: what gives a container its machine"
    yield from section(title, ("members", "values"), rows)


def _section(verdict: Verdict) -> Iterator[str]:
    members = [member for member in MEMBERS if member.verdict is verdict]
    if verdict is Verdict.HARMLESS:
        yield from section(
            _TITLES[verdict], ("members", "placement", "end", "exit code", "price", "why"), _harmless(members)
        )
        return
    rows = (
        (", ".join(f"`{member.path}`" for member in same), why)
        for why, same in groupby(members, key=lambda member: member.why)
    )
    yield from section(_TITLES[verdict], ("members", "why"), rows)


def _harmless(members: Sequence[Member]) -> Iterator[tuple[str, ...]]:
    for (why, unchanged), same in groupby(members, key=lambda member: (member.why, member.unchanged)):
        if unchanged is not None:
            aspects = (unchanged.placement, unchanged.end, unchanged.exit_code, unchanged.price)
            yield (", ".join(f"`{member.path}`" for member in same), *aspects, why)


def main(arguments: Sequence[str]) -> None:
    """Write the page to the path that is the only argument."""
    Path(arguments[0]).write_text(render_page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
