"""A deployment of all stacks: looks at the account, and makes what is missing, in the order in which it is needed."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from relaunch.core.definitions.definition import GITHUB_REPOSITORY_PATTERN
from relaunch_cli.deployment.account_roles import create_github_provider, create_service_linked_role, read_account_roles
from relaunch_cli.deployment.application import SamDeploy
from relaunch_cli.deployment.capacity_providers import PROVIDERS, ProviderStacks, check_providers, read_providers
from relaunch_cli.deployment.change_set import NEVER_MADE, ChangeSets, check_status, read_stack
from relaunch_cli.deployment.clusters import changed_clusters
from relaunch_cli.deployment.concurrency import RESERVATIONS
from relaunch_cli.deployment.findings import QuotaRequests, Stack, Survey, role_stack_name
from relaunch_cli.deployment.first_refresh import start_first_refresh
from relaunch_cli.deployment.function_urls import check_function_urls
from relaunch_cli.deployment.github_repository import RepositoryIds, describe_environment
from relaunch_cli.deployment.github_stacks import find_github_stacks
from relaunch_cli.deployment.machine_parameters import LAUNCH_TEMPLATES, SUBNETS, Way, check_most, read_parameters
from relaunch_cli.deployment.machines import MachineClients, prepare_machines
from relaunch_cli.deployment.named_resources import check_resources
from relaunch_cli.deployment.quotas import read_quotas, request_quotas
from relaunch_cli.deployment.receivers import open_receivers
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.reservations import reservations
from relaunch_cli.deployment.separation import check_name, overlaps, separate_names
from relaunch_cli.deployment.source import Source
from relaunch_cli.deployment.training_parameters import (
    GITHUB_PROVIDER,
    GITHUB_REPOSITORY,
    OWN_PARAMETERS,
    SWITCH,
    Account,
    is_wanted,
    training_parameters,
)
from relaunch_cli.deployment.training_roles import check_names, find_role_stacks, role_parameters, training_of

_BUCKETS = "CheckpointBuckets"
_WEBHOOK = "Webhook"
_WEBHOOK_CONCURRENCY = "WebhookReservedConcurrency"
# What a new application has only if it is named: images that are pushed, and callers, start jobs without.
_LEFT_OUT = {_WEBHOOK: "off", "Uploads": "off"}
# ECS refuses a cluster while it cannot assume its role yet ("Unable to assume the service linked role").
_ROLE_SECONDS = 10.0


class Region(Protocol):
    """An account's region, with the caller's credentials."""

    @property
    def region(self) -> str:
        """Return the region's name."""

    @property
    def id(self) -> str:
        """Return the account's number."""

    def client(self, service: str) -> Any:
        """Return a client of boto3."""


def survey(
    stack: str,
    given: Mapping[str, str],
    account: Region,
    find_ids: Callable[[str], RepositoryIds | None],
    trainings: Sequence[str] = (),
) -> Survey:
    """Look at the account; nothing is changed. `find_ids` asks GitHub for the numbers of a repository.

    `trainings` get a role of their own, as those have already that did before.

    Raises:
        RefusedError: parameters contradict each other or name what is not there, a stack cannot be updated now, or the
            application cannot be deployed in this region.
        ClientError, BotoCoreError: a call failed.
    """
    check_function_urls(account.region)
    check_names(trainings)
    stacks = account.client("cloudformation")
    names = (stack, f"{stack}-training", f"{stack}-machines")
    found = {name: found for name in names if (found := read_stack(name, stacks)) is not None}
    role_stacks = {each.name: each for each in find_role_stacks(stack, stacks)}
    repositories = find_github_stacks(stack, stacks)
    found |= role_stacks | {each.name: each for each in repositories}
    before = {name: each for name, each in found.items() if each.status != "REVIEW_IN_PROGRESS"}
    is_left_over = stack in before and before[stack].status == NEVER_MADE
    if is_left_over:
        del before[stack]
    for each in before.values():
        check_status(each)
    _check_values(given)
    deployed = before[stack].parameters if stack in before else {}
    check_most(given, deployed)
    if stack not in before:
        check_name(stack)
        given = {**_LEFT_OUT, **separate_names(stack, before), **given}
    notes = [
        *overlaps(stack, given, deployed),
        *changed_clusters(given, deployed),
        *check_resources(given, account.client, account.region),
    ]
    wanted = None
    if is_wanted(given, before.get(stack), before.get(f"{stack}-training")):
        clients = Account(*(account.client(each) for each in ("ec2", "ecs", "ecr", "s3", "logs")))
        wanted = training_parameters(
            stack, given, before.get(stack), before.get(f"{stack}-training"), clients, notes.append
        )
        wanted |= _ids(wanted, find_ids, notes)
    elif trainings:
        raise RefusedError("a role of a training is for the buckets of the stack of trainings: leave out Training=off")
    parameters = read_parameters([f"{name}={value}" for name, value in _of_stacks(given).items()])
    roles = read_account_roles(account.client("iam"), with_github=bool((wanted or {}).get(GITHUB_REPOSITORY)))
    return Survey(
        stack=stack,
        account=account.id,
        region=account.region,
        given=given,
        training=wanted,
        has_machines=_has_machines(parameters.way, before.get(stack)),
        before=before,
        roles=roles,
        quotas=read_quotas(account.client("service-quotas")),
        notes=(*notes, *_environment_notes(given, wanted or {}), *roles.unread, *roles.notes),
        repositories=repositories,
        is_left_over=is_left_over,
        trainings=() if wanted is None else sorted({*trainings, *map(training_of, role_stacks.values())}),
    )


def _has_machines(way: Way, application: Stack | None) -> bool:
    """Return whether the application will have machines of our own; those of one that is there stay as they are."""
    if way is Way.KEPT and application is not None:
        return bool(application.parameters.get(LAUNCH_TEMPLATES))
    return way is not Way.OFF


def _check_values(given: Mapping[str, str]) -> None:
    check_providers(given)
    for switch in _LEFT_OUT:
        if given.get(switch, "on") not in ("on", "off"):
            raise RefusedError(f"{switch}={given[switch]} is neither {switch}=on nor {switch}=off")


def _ids(
    wanted: Mapping[str, str], find_ids: Callable[[str], RepositoryIds | None], notes: list[str]
) -> Mapping[str, str]:
    repository = wanted.get(GITHUB_REPOSITORY, "")
    if repository and re.fullmatch(GITHUB_REPOSITORY_PATTERN, repository) is None:
        raise RefusedError(
            f"{repository!r} is no repository at GitHub: write it like OWNER/NAME, for example acme/vision"
        )
    if not repository or wanted.get("GitHubRepositoryId"):
        return {}
    ids = find_ids(repository)
    if ids is None:
        notes.append(
            f"GitHub does not tell the numbers of {repository}, which is trusted by its name alone: whoever makes a "
            "repository of that name once it was renamed, moved or deleted can push images and submit jobs, and a "
            "repository made since 15 July 2026 is not let in; sign in with `gh auth login`, or name GitHubOwnerId "
            "and GitHubRepositoryId"
        )
        return {}
    parameters, said = ids.parameters_of(repository, wanted.get("GitHubRef", ""))
    notes += said
    return parameters


def _environment_notes(given: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[str]:
    environment = wanted.get("GitHubEnvironment", "")
    if environment and given.get("GitHubEnvironment"):
        yield describe_environment(environment)
    if environment and given.get("GitHubRef"):
        yield (
            f"GitHubRef has no effect, for the environment {environment} says whose jobs are let in: "
            "GitHubEnvironment= takes it away"
        )


def _of_stacks(given: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of the stacks of machines and of the application."""
    return {name: value for name, value in given.items() if name not in (*OWN_PARAMETERS, SWITCH, PROVIDERS)}


@dataclass(frozen=True)
class Deployment:
    """Makes what a survey says; `confirm` asks about changes of stacks that exist, `tell` prints progress."""

    account: Region
    source: Source
    sam: SamDeploy
    confirm: Callable[[str], bool]
    tell: Callable[[str], None]
    is_confirmed: bool = False
    """Whether no question is to be asked."""
    sleep: Callable[[float], None] = time.sleep

    def run(self, plan: Survey) -> QuotaRequests:
        """Deploy; return which quotas were requested. A second run goes on where the first one failed.

        Raises:
            RefusedError: a stack was not deployed; those before it were.
            ClientError, BotoCoreError: a call failed.
        """
        iam = self.account.client("iam")
        for service in plan.roles.missing:
            create_service_linked_role(service, iam)
            self.tell(f"made the service-linked role of {service}")
        to_request = plan.quotas.to_request if plan.is_new else ()
        requests = request_quotas(to_request, self.account.client("service-quotas"))
        build = self.sam.build()
        if plan.roles.missing:
            self.sleep(_ROLE_SECONDS)
        change_sets = ChangeSets(self.account.client("cloudformation"), self.confirm, self.tell, asks_for_new=False)
        if plan.is_left_over:
            # SAM CLI updates no such stack, and makes none of its name.
            change_sets.remove(plan.stack)
        given = {**_of_stacks(plan.given), **build}
        repository_arn = ""
        if plan.training is not None:
            made = self._training(plan, change_sets)
            given = application_parameters(given, plan.before.get(plan.stack), made.outputs)
            repository_arn = made.outputs.get("RepositoryArn", "")
            self._roles(plan, made, change_sets)
        for each in plan.repositories:
            # With the template of this release; what it lets in is changed by `relaunch github add` alone.
            change_sets.deploy(each.name, self.source.github_repository, each.parameters, each)
        ec2 = self.account.client("ec2")
        clients = MachineClients(ec2, self.account.client("ecs"), self.source.machines, repository_arn)
        arguments = [f"{name}={value}" for name, value in given.items()]
        parameters = prepare_machines(read_parameters(arguments), plan.stack, clients, change_sets)
        if wanted := read_providers(plan.given.get(PROVIDERS, "")):
            providers = ProviderStacks(plan.stack, self.source.capacity_provider, clients.ecs, change_sets)
            before = plan.before[plan.stack].parameters if not plan.is_new else {}
            parameters = providers.deploy(wanted, parameters, before)
        self._application(plan, parameters, change_sets.stacks)
        return requests

    def _training(self, plan: Survey, change_sets: ChangeSets) -> Stack:
        """Deploy what trainings need; return that stack."""
        wanted = dict(plan.training or {})
        if wanted.get(GITHUB_REPOSITORY) and not wanted.get(GITHUB_PROVIDER):
            provider = plan.roles.github_provider_arn or create_github_provider(self.account.client("iam"))
            wanted[GITHUB_PROVIDER] = provider
        name = f"{plan.stack}-training"
        made = change_sets.deploy(name, self.source.training, wanted, plan.before.get(name))
        missing = [each for each in ("ClusterName", "VpcId", "CheckpointBucketName") if not made.outputs.get(each)]
        if missing:
            raise RefusedError(f"the stack {name} has no output {', '.join(missing)}: it is another one")
        return made

    def _roles(self, plan: Survey, training: Stack, change_sets: ChangeSets) -> None:
        """Deploy the roles of single trainings, after the stack of all of them."""
        before = plan.before[plan.stack].parameters if not plan.is_new else {}
        path = plan.given.get("TaskRolePath") or before.get("TaskRolePath", "")
        for each in plan.trainings:
            name = role_stack_name(plan.stack, each)
            parameters = role_parameters(plan.stack, each, plan.training or {}, training.outputs, path)
            change_sets.deploy(name, self.source.training_role, parameters, plan.before.get(name))

    def _application(self, plan: Survey, parameters: Mapping[str, str], stacks: Any) -> None:
        # Nothing is reserved for a webhook that there is not.
        known = parameters if plan.is_on(_WEBHOOK) else {_WEBHOOK_CONCURRENCY: "0", **parameters}
        functions = self.account.client("lambda")
        extra, notes = reservations(known, plan.stack, functions, stacks)
        for note in notes:
            self.tell(note)
        if plan.is_new:
            self.tell(f"{plan.stack}: deploying the application, which takes a few minutes")
            self.sam.create(plan.stack, {**parameters, **extra}, stacks)
            start_first_refresh(read_stack(plan.stack, stacks), functions, self.tell)
        else:
            self.sam.update(plan.stack, {**parameters, **extra}, stacks, is_confirmed=self.is_confirmed)
            named = {**plan.before[plan.stack].parameters, **parameters, **extra}
            reserved = {each.function: int(named.get(each.parameter, "0")) for each in RESERVATIONS}
            open_receivers(plan.stack, reserved, functions, stacks, self.tell)


def application_parameters(
    given: Mapping[str, str], application: Stack | None, outputs: Mapping[str, str]
) -> dict[str, str]:
    """Return the parameters of machines and application: those that are named, then the outputs for trainings.

    A network that the application has already is kept, because machines may run in it.
    """
    before = application.parameters if application else {}
    told = {"ClusterName": outputs["ClusterName"]}
    named_network = given.get(SUBNETS) or given.get("VpcId") or before.get(SUBNETS)
    if not named_network and given.get("Machines") != "off":
        told |= {SUBNETS: outputs["MachineSubnets"]} if outputs.get("MachineSubnets") else {"VpcId": outputs["VpcId"]}
    buckets = [each for each in given.get(_BUCKETS, before.get(_BUCKETS, "")).split(",") if each]
    if outputs["CheckpointBucketName"] not in buckets:
        buckets.append(outputs["CheckpointBucketName"])
    return {**told, **given, _BUCKETS: ",".join(buckets)}
