"""Checks an AWS account for jobs on ECS, several parts at once; what fails ends no other check."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from relaunch.adapters.offerings.bundled import load_on_demand_prices
from relaunch.core.checks import Check, is_ok
from relaunch.core.definitions.checkpoint_bucket import CheckpointGrants
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.triggers.schedules import has_schedules
from relaunch.ports import CapacityProviderOffer, Dependencies, Schedules, UploadRules
from relaunch.usecases.arrange_schedules import plan_schedules
from relaunch.usecases.arrange_upload_rules import plan_upload_rules
from relaunch.usecases.plan_jobs import Plan, plan_jobs
from relaunch_cli.account_checks.buckets import check_schedules, check_upload_rules
from relaunch_cli.account_checks.commit_statuses import NAME as COMMIT_STATUSES
from relaunch_cli.account_checks.deliveries import NAME as FAILED_DELIVERIES
from relaunch_cli.account_checks.prices import NAME as PRICES
from relaunch_cli.account_checks.prices import check_prices
from relaunch_cli.account_checks.quotas import Need, find_needs
from relaunch_cli.account_checks.ram_trust import NAME as RAM_TRUST
from relaunch_cli.account_checks.sources import check_sources
from relaunch_cli.account_checks.stack_roles import NAME as ROLES
from relaunch_cli.account_readers import account, capacity_providers, definitions, ecs, failures, machines
from relaunch_cli.account_readers.calls import AccountCalls, all_known
from relaunch_cli.account_readers.clusters import NAME as ON_CLUSTERS
from relaunch_cli.account_readers.clusters import check_clusters
from relaunch_cli.account_readers.commit_statuses import check_commit_statuses
from relaunch_cli.account_readers.deliveries import check_failed_deliveries
from relaunch_cli.account_readers.ram_trust import check_ram_trust
from relaunch_cli.account_readers.stack_roles import check_stack_roles

_AT_ONCE = 6
# The output of the stack with the name of that function.
_READS_PRICES = "RefreshOfferingsFunctionName"
_NONE_REGISTERED = "none is registered: `relaunch init` writes one in a repository, `relaunch apply` registers it"


@dataclass(frozen=True)
class StackAccess:
    """What a stack is told and gives access to: its outputs, its dependencies, its rules and schedules."""

    outputs: Mapping[str, str]
    cluster: str
    providers: tuple[CapacityProviderOffer, ...]
    deps: Dependencies
    rules: UploadRules
    schedules: Schedules


@dataclass(frozen=True)
class Part:
    """Some checks that are made together; `name` is that of an unknown one if they cannot all be made."""

    name: str
    checks: Callable[[], Iterator[Check]]


@dataclass(frozen=True)
class Registered:
    """The registered definitions with their plans, and which of it could not be read."""

    definitions: tuple[JobDefinition, ...] = ()
    plans: tuple[Plan, ...] = ()
    unread: tuple[Check, ...] = field(default=())


def read_registered(deps: Dependencies) -> Registered:
    """Read the definitions for ECS, and plan a job of each; S3 triggers of the others are read, too."""
    found: list[JobDefinition] = []
    plans: list[Plan] = []

    def read() -> Iterator[Check]:
        found.extend(deps.definitions.list_definitions())
        plans.extend(plan_jobs([each for each in found if each.target.capabilities.takes_task_definition], deps))
        return iter(())

    unread = all_known("job definitions", read)
    return Registered(tuple(found), tuple(plans), tuple(unread))


def parts_of_account(stack: str, calls: AccountCalls) -> list[Part]:
    """Return what can be checked without a stack."""
    return [
        Part(f"stack {stack}", lambda: ecs.check_application(stack, calls)),
        Part(ROLES, lambda: check_stack_roles(stack, calls)),
        Part("service-linked roles", lambda: account.check_service_roles(calls)),
        Part("Lambda concurrency", lambda: account.check_lambda(stack, calls)),
    ]


def parts_of_stack(stack: str, access: StackAccess, calls: AccountCalls) -> list[Part]:
    """Return what can be checked of a stack whatever its definitions are."""
    settings = access.deps.machine_settings

    def provided() -> Iterator[Check]:
        now = access.deps.clock.now()
        return capacity_providers.check_providers(access.providers, access.cluster, now, calls)

    def joined() -> Iterator[Check]:
        groups = capacity_providers.groups_of(access.providers, access.cluster, calls)
        return machines.check_joined(settings, access.cluster, groups, access.deps.clock.now(), calls)

    def priced() -> Iterator[Check]:
        if not settings.is_on and not access.providers:
            return  # jobs on clusters have no prices
        deps = access.deps
        now = deps.clock.now()
        region = deps.offerings.snapshot(now).region
        function = access.outputs.get(_READS_PRICES, "NAME")
        yield check_prices(deps.offerings.price_origins(now), region, load_on_demand_prices().region, function, now)

    return [
        Part(f"cluster {access.cluster}", lambda: ecs.check_ecs_cluster(access.cluster, calls)),
        Part("capacity providers", provided),
        Part("launch templates", lambda: machines.check_images(settings, calls)),
        Part("subnets", lambda: machines.check_subnets(settings, calls)),
        Part("instances", joined),
        Part("dead-letter queues", lambda: failures.check_queues(access.outputs, calls)),
        Part("alarms", lambda: failures.check_stack_alarms(stack, calls)),
        Part(PRICES, priced),
        Part(RAM_TRUST, lambda: check_ram_trust(access.outputs, calls)),
    ]


def parts_of_triggers(named: Sequence[JobDefinition], outputs: Mapping[str, str], calls: AccountCalls) -> list[Part]:
    """Return what can be checked of what triggers watch, with the outputs of the stack."""
    return [
        Part("sources of events", lambda: check_sources(named, outputs)),
        Part("uploads", lambda: definitions.check_watched_buckets(named, calls)),
        Part("images", lambda: definitions.check_repositories(named, calls)),
    ]


def parts_of_definitions(region: str, access: StackAccess, registered: Registered, calls: AccountCalls) -> list[Part]:
    """Return what can be checked of the definitions that were read, and of their plans."""
    named = registered.definitions
    plans = registered.plans
    deps = access.deps
    grants = deps.limits.task_definitions
    of_buckets = deps.checkpoint_grants or CheckpointGrants()
    needs = needs_of(plans)
    of_plans = [
        Part("vCPU quotas", lambda: account.check_ec2_quotas(needs, calls)),
        Part("job definitions", lambda: definitions.check_plans(plans, grants, calls)),
    ]
    if not named:
        # What is asked of definitions is right of none, and says little of an account that is new.
        of_plans = [Part("job definitions", lambda: iter((is_ok("job definitions", _NONE_REGISTERED),)))]
    of_named = [
        Part("checkpoint buckets", lambda: definitions.check_checkpoint_buckets(named, region, of_buckets, calls)),
        *parts_of_triggers(named, access.outputs, calls),
        Part(
            FAILED_DELIVERIES,
            lambda: check_failed_deliveries(named, access.outputs, deps.clock.now(), calls),
        ),
        Part(COMMIT_STATUSES, lambda: check_commit_statuses(access.outputs, deps.clock.now(), calls)),
        Part("rules of triggers", lambda: check_upload_rules(plan_upload_rules(named, access.rules))),
    ]
    if any(each.target.capabilities.runs_pods for each in named):
        of_named.append(Part(ON_CLUSTERS, lambda: check_clusters(deps.jobs)))
    if has_schedules(named):
        schedules = Part("schedules of triggers", lambda: check_schedules(plan_schedules(named, access.schedules)))
        of_named.append(schedules)
    # Of definitions that could not be read, or planned, nothing follows.
    if registered.unread:
        return of_named if named else []
    return of_plans + of_named


def needs_of(plans: Sequence[Plan]) -> list[Need]:
    """Return the vCPUs that the definitions of these plans need."""
    return [
        need
        for plan in plans
        if plan.selection
        for need in find_needs(plan.definition.name, plan.selection, plan.definition.nodes)
    ]


def make_checks(parts: list[Part]) -> list[Check]:
    """Make the checks of all parts, and return them in their order."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [check for made in pool.map(_make, parts) for check in made]


def _make(part: Part) -> list[Check]:
    return all_known(part.name, part.checks)
