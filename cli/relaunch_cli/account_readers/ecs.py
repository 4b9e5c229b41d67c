"""Reads the stack and its ECS cluster."""

from collections.abc import Iterator, Mapping
from typing import Any

from relaunch.core.checks import Check
from relaunch_cli.account_checks.stack import check_cluster, check_stack
from relaunch_cli.account_readers.calls import AccountCalls


def read_stack(name: str, calls: AccountCalls) -> Mapping[str, Any] | None:
    """Return a stack as CloudFormation describes it; None if there is none.

    Raises:
        UnreadError: it cannot be read.
    """
    # CloudFormation answers ValidationError for a stack that is not there (DescribeStacks, "Errors").
    answer = calls.call("cloudformation", "describe_stacks", "ValidationError", StackName=name)
    return answer["Stacks"][0] if answer else None


def check_application(name: str, calls: AccountCalls) -> Iterator[Check]:
    """Check the application's stack.

    Raises:
        UnreadError: it cannot be read.
    """
    stack = read_stack(name, calls)
    yield check_stack(name, str(stack["StackStatus"]) if stack else None)


def check_ecs_cluster(name: str, calls: AccountCalls) -> Iterator[Check]:
    """Check the cluster.

    Raises:
        UnreadError: it cannot be read.
    """
    cluster = read_cluster(name, calls)
    yield check_cluster(name, str(cluster["status"]) if cluster else None)


def read_cluster(name: str, calls: AccountCalls) -> Mapping[str, Any] | None:
    """Return a cluster as ECS describes it; None if there is none.

    Raises:
        UnreadError: it cannot be read.
    """
    # A cluster that does not exist is in `failures` (DescribeClusters, API Reference).
    clusters = calls.call("ecs", "describe_clusters", clusters=[name])["clusters"]
    return clusters[0] if clusters else None
