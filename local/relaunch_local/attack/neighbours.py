"""Stacks beside each other in one account, as `relaunch deploy` makes them, and what each has of its own."""

from collections.abc import Iterator
from functools import lru_cache

from relaunch_cli.deployment.separation import DEFAULT_STACK, family_prefix, separate_names
from relaunch_local.iam.permission import Permission
from relaunch_local.iam.policies import PolicyAuthorizer, PolicyDocument, listed
from relaunch_local.iam.reach import Reached, Somebody, reach
from relaunch_local.templates.deployed import DeployedStacks

NAMES = ("a", "a-b", "relaunch", "relaunch-vision")
"""Each begins with the name of another one, and two with what the templates have by default."""

_LOOKS_UP_IMAGES = ("SubmitJobRole", "JobApiRole", "PlanApiRole", "ReconcileRole")
SHARED = {
    (role, f"ecr:{action}") for role in _LOOKS_UP_IMAGES for action in ("BatchGetImage", "GetDownloadUrlForLayer")
}
"""What functions may do in every repository: a task definition may name any image, whose digest they look up."""


@lru_cache(maxsize=64)
def deployed(name: str, region: str = "us-east-1") -> DeployedStacks:
    """Return the stacks that `relaunch deploy --stack NAME` makes in an account that has none of this name."""
    prefix = "relaunch-" if name == DEFAULT_STACK else family_prefix(name)
    return DeployedStacks(name, separate_names(name, {}), prefix, region)


def somebody(stacks: DeployedStacks) -> Somebody:
    """Return what whose stacks these are have, for the policies of others."""
    return Somebody(
        stacks.arns,
        facts={
            "ec2:ResourceTag/relaunch:stack": stacks.name,
            # No call makes what is there, and no launch template but their own names it.
            "ec2:CreateAction": None,
            "ec2:IsLaunchTemplateResource": "false",
        },
        elsewhere={
            "ecs:cluster": [stacks.cluster],
            "events:TargetArn": [(each,) for each in stacks.arns if ":sqs:" in each],
        },
    )


def reached_by(role: str, own: DeployedStacks, other: DeployedStacks) -> list[Reached]:
    """Return what a role of one deployment reaches in another, but for what is shared."""
    found = reach(own.roles[role], somebody(other), own.arns)
    return [each for each in found if (role, each.action) not in SHARED]


def senders(policy: PolicyDocument, own: DeployedStacks, other: DeployedStacks) -> Iterator[Reached]:
    """Yield the rules of another deployment that a policy of a queue lets send into a queue of one's own."""
    statements = [{k: v for k, v in each.items() if k != "Principal"} for each in listed(policy["Statement"])]
    authorize = PolicyAuthorizer({"rule": [{"Statement": statements}]})
    for queue in (each for each in own.arns if ":sqs:" in each):
        for rule in other.rules:
            if authorize(Permission("rule", "sqs:SendMessage", queue, {"aws:SourceArn": rule})):
                yield Reached(f"sqs:SendMessage by {rule}", queue)
