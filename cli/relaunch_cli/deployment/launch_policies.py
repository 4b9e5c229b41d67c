"""Whether the policies of `launch_attempt` have room for the families and buckets, before anything is made.

IAM takes 10,240 characters of all inline policies of a role, white space apart ("IAM and AWS STS quotas", IAM User
Guide), and refuses more when the stack of the application is made, after all others.
"""

from collections.abc import Mapping

from relaunch_cli.deployment.refusals import RefusedError

_MOST = 10_240
# What the role has without any name, where every condition of the template holds.
_REST = 4_250
# How often the role has each name, and how much is around them each time (LaunchAttemptRole in template.yaml).
_STACK_TIMES = 10
_CLUSTER_TIMES = 6
_FAMILY_TIMES = 4
_AROUND_FAMILY = 202
_BUCKET_TIMES = 2
_AROUND_BUCKET = 34


def characters_of_launch_policies(stack: str, values: Mapping[str, str]) -> int:
    """Return about how many characters the inline policies of `launch_attempt` will have, never too few."""
    families = _names(values.get("TaskDefinitionFamilies", ""))
    buckets = _names(values.get("CheckpointBuckets", ""))
    return (
        _REST
        + _STACK_TIMES * len(stack)
        + _CLUSTER_TIMES * len(values.get("ClusterName", ""))
        + len(values.get("TaskRolePath", ""))
        + sum(_AROUND_FAMILY + _FAMILY_TIMES * len(each) for each in families)
        + sum(_AROUND_BUCKET + _BUCKET_TIMES * len(each) for each in buckets)
    )


def check_launch_policies(stack: str, values: Mapping[str, str]) -> None:
    """Check the parameters of a deployment.

    Raises:
        RefusedError: IAM would refuse the policies; the message says what to shorten.
    """
    count = characters_of_launch_policies(stack, values)
    if count > _MOST:
        families = len(_names(values.get("TaskDefinitionFamilies", "")))
        raise RefusedError(
            f"the policies of launch_attempt would have about {count:,} characters, and IAM takes {_MOST:,}: name the "
            f"{families} TaskDefinitionFamilies by what they begin with, such as team-*, or fewer CheckpointBuckets"
        )


def _names(text: str) -> list[str]:
    return [each for each in text.split(",") if each]
