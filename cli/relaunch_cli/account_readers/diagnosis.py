"""Checks an AWS account for jobs on ECS, several parts at once; what fails ends no other check."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from relaunch.core.checks import Check
from relaunch.core.definitions.checkpoint_bucket import CheckpointGrants
from relaunch.core.definitions.definition import JobDefinition
from relaunch.ports import CapacityProviderOffer, Dependencies, UploadRules
from relaunch.usecases.arrange_upload_rules import plan_upload_rules
from relaunch.usecases.plan_jobs import Plan, plan_jobs
from relaunch_cli.account_checks.buckets import check_upload_rules
from relaunch_cli.account_checks.quotas import find_needs
from relaunch_cli.account_readers import account, definitions, ecs, failures, machines
from relaunch_cli.account_readers.calls import AccountCalls, all_known

_AT_ONCE = 6


@dataclass(frozen=True)
class StackAccess:
    """What a stack is told and gives access to: its outputs, its dependencies and its rules for uploads."""

    outputs: Mapping[str, str]
    cluster: str
    providers: tuple[CapacityProviderOffer, ...]
    deps: Dependencies
    rules: UploadRules


@dataclass(frozen=True)
class Part:
    """Some checks that are made together; `name` is that of an unknown one if they cannot all be made."""

    name: str
    checks: Callable[[], Iterator[Check]]


@dataclass(frozen=True)
class Registered:
    """The registered definitions with their plans, and what of it could not be read."""

    definitions: tuple[JobDefinition, ...] = ()
    plans: tuple[Plan, ...] = ()
    unread: tuple[Check, ...] = field(default=())


def read_registered(deps: Dependencies) -> Registered:
    """Read the definitions for ECS, and plan a job of each; S3 triggers of the others are read, too."""
    found: list[JobDefinition] = []
    plans: list[Plan] = []

    def read() -> Iterator[Check]:
        found.extend(deps.definitions.list_definitions())
        plans.extend(plan_jobs([each for each in found if not each.target.is_kubernetes], deps))
        return iter(())

    unread = all_known("job definitions", read)
    return Registered(tuple(found), tuple(plans), tuple(unread))


def parts_of_account(stack: str, calls: AccountCalls) -> list[Part]:
    """Return what can be checked without a stack."""
    return [
        Part(f"stack {stack}", lambda: ecs.check_application(stack, calls)),
        Part("service-linked roles", lambda: account.check_service_roles(calls)),
        Part("Lambda concurrency", lambda: account.check_lambda(stack, calls)),
    ]


def parts_of_stack(
    stack: str, region: str, access: StackAccess, registered: Registered, calls: AccountCalls
) -> list[Part]:
    """Return what can be checked of a stack."""
    deps, named = access.deps, registered.definitions
    settings, grants = deps.machine_settings, deps.limits.task_definitions
    needs = [
        need for plan in registered.plans if plan.selection for need in find_needs(plan.definition.name, plan.selection)
    ]

    def joined() -> Iterator[Check]:
        groups = ecs.groups_of(access.providers, calls)
        return machines.check_joined(settings, access.cluster, groups, deps.clock.now(), calls)

    def buckets() -> Iterator[Check]:
        known_grants = deps.checkpoint_grants or CheckpointGrants()
        if deps.buckets is not None:
            yield from definitions.check_checkpoint_buckets(named, region, known_grants, deps.buckets, calls)

    return [
        Part(f"cluster {access.cluster}", lambda: ecs.check_ecs_cluster(access.cluster, calls)),
        Part("capacity providers", lambda: ecs.check_providers(access.providers, access.cluster, calls)),
        Part("vCPU quotas", lambda: account.check_ec2_quotas(needs, calls)),
        Part("launch templates", lambda: machines.check_images(settings, calls)),
        Part("subnets", lambda: machines.check_subnets(settings, calls)),
        Part("instances", joined),
        Part("job definitions", lambda: definitions.check_plans(registered.plans, grants, calls)),
        Part("checkpoint buckets", buckets),
        Part("uploads", lambda: definitions.check_watched_buckets(named, calls)),
        Part("rules for uploads", lambda: check_upload_rules(plan_upload_rules(named, access.rules))),
        Part("dead-letter queues", lambda: failures.check_queues(access.outputs, calls)),
        Part("alarms", lambda: failures.check_stack_alarms(stack, calls)),
    ]


def make_checks(parts: list[Part]) -> list[Check]:
    """Make the checks of all parts, and return them in their order."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [check for made in pool.map(_make, parts) for check in made]


def _make(part: Part) -> list[Check]:
    return all_known(part.name, part.checks)
