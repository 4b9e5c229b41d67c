"""The roles of repositories on GitHub beside the one that `relaunch deploy --github` lets in: a stack for each."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaunch.core.definitions.definition import GITHUB_REPOSITORY_PATTERN
from relaunch_cli.deployment.account_roles import create_github_provider, read_account_roles
from relaunch_cli.deployment.change_set import ChangeSets, list_stacks, read_stack
from relaunch_cli.deployment.findings import Stack, github_stack_name
from relaunch_cli.deployment.github_repository import RepositoryIds, describe_environment
from relaunch_cli.deployment.refusals import RefusedError

_APPLICATION = "ApplicationStack"
_REPOSITORY = "GitHubRepository"
_PROVIDER = "GitHubOidcProviderArn"
_REPOSITORY_ID = "GitHubRepositoryId"
_ROLE_PATH = "RolePath"
_DEFAULT_PATH = "relaunch/"


@dataclass(frozen=True, slots=True)
class WantedAccess:
    """A repository, OWNER/NAME, and what is wanted of its access; what is empty keeps what it has, or the default."""

    repository: str
    ref: str = ""
    environment: str = ""
    images: str = ""

    @property
    def parameters(self) -> Mapping[str, str]:
        """The parameters that are named; a branch or tag takes the place of an environment, which would come first."""
        named = {"GitHubRef": self.ref, "GitHubEnvironment": self.environment, "ImageRepository": self.images}
        instead = {"GitHubEnvironment": ""} if self.ref else {}
        return instead | {name: value for name, value in named.items() if value}


@dataclass(frozen=True)
class AccessPlan:
    """The stack of a repository before, None if there is none, and the parameters that it is to have."""

    name: str
    before: Stack | None
    parameters: Mapping[str, str]
    needs_provider: bool
    notes: Sequence[str] = ()


def check_repository(repository: str) -> None:
    """Check that a text can name a repository.

    Raises:
        RefusedError: it cannot.
    """
    if re.fullmatch(GITHUB_REPOSITORY_PATTERN, repository) is None:
        raise RefusedError(
            f"{repository!r} is no repository at GitHub: write it like OWNER/NAME, for example acme/vision"
        )


def find_github_stacks(stack: str, stacks: Any) -> Sequence[Stack]:
    """Return the stacks with the roles of repositories of the application `stack`, by their names.

    Raises:
        ClientError, BotoCoreError: a call failed.
    """
    found = (each for each in list_stacks(stacks) if is_github_stack(each, stack))
    return sorted(found, key=lambda each: each.name)


def is_github_stack(found: Stack, stack: str) -> bool:
    """Return whether a stack has the roles of a repository of the application `stack`."""
    parameters = found.parameters
    is_of_application = parameters.get(_APPLICATION) == stack
    return is_of_application and found.name == github_stack_name(stack, parameters.get(_REPOSITORY, ""))


def repository_of(found: Stack) -> str:
    """Return the repository that a stack has the roles of, as OWNER/NAME."""
    return found.parameters[_REPOSITORY]


def plan_access(
    stack: str, wanted: WantedAccess, client: Callable[[str], Any], find_ids: Callable[[str], RepositoryIds | None]
) -> AccessPlan:
    """Look at the account; nothing is changed. `find_ids` asks GitHub for the numbers of a repository.

    Raises:
        RefusedError: there is no such application, or it lets the repository in already, or the name is none, or both
            a branch and an environment are named.
        ClientError, BotoCoreError: a call failed.
    """
    check_repository(wanted.repository)
    if wanted.ref and wanted.environment:
        raise RefusedError("a branch or tag is let in, or an environment instead: leave out --ref or --environment")
    stacks = client("cloudformation")
    application = read_stack(stack, stacks)
    if application is None or not application.outputs.get("PlanApiUrl"):
        lacks = "has no function plan_api yet" if application is not None else "is not there"
        raise RefusedError(f"the stack {stack} {lacks}: relaunch deploy, then this again")
    training = read_stack(f"{stack}-training", stacks)
    let_in = training.parameters.get(_REPOSITORY, "") if training else ""
    if let_in.lower() == wanted.repository.lower():
        raise RefusedError(f"{let_in} is let in by {stack}-training already: relaunch deploy --github changes that one")
    name = github_stack_name(stack, wanted.repository)
    before = read_stack(name, stacks)
    kept = dict(before.parameters) if before is not None else {}
    parameters = {**kept, _APPLICATION: stack, _REPOSITORY: kept.get(_REPOSITORY) or wanted.repository}
    parameters[_ROLE_PATH] = (training.parameters.get(_ROLE_PATH) if training else "") or _DEFAULT_PATH
    parameters |= wanted.parameters
    notes = [*_add_ids(parameters, find_ids)]
    if wanted.environment:
        notes.append(describe_environment(wanted.environment))
    if (images := parameters.get("ImageRepository")) and training and training.outputs.get("RepositoryName") == images:
        notes.append(
            f"workflows of {wanted.repository} may push images into {images}, which all trainings share: an image "
            "whose tag a definition of another repository watches starts its jobs, and is what they run"
        )
    roles = read_account_roles(client("iam"), with_github=True)
    provider = parameters.get(_PROVIDER) or roles.github_provider_arn
    notes += [*(each for each in roles.unread if "OIDC" in each), *roles.notes]
    return AccessPlan(name, before, {**parameters, _PROVIDER: provider}, needs_provider=not provider, notes=notes)


def _add_ids(parameters: dict[str, str], find_ids: Callable[[str], RepositoryIds | None]) -> Sequence[str]:
    """Add the numbers of the repository to its parameters, unless they are there; return what to say if none are."""
    if parameters.get(_REPOSITORY_ID):
        return ()
    repository = parameters[_REPOSITORY]
    ids = find_ids(repository)
    if ids is None:
        return (
            f"GitHub does not tell the numbers of {repository}, which is trusted by its name alone: whoever makes a "
            "repository of that name once it was renamed, moved or deleted gets in, and one made since 15 July 2026 "
            "does not; sign in with `gh auth login`, and run this again",
        )
    if ids.full_name and ids.full_name.lower() != repository.lower():
        raise RefusedError(f"GitHub calls {repository} {ids.full_name} now: relaunch github add {ids.full_name}")
    named, notes = ids.parameters_of(repository, parameters.get("GitHubRef", ""))
    parameters |= named
    return notes


def deploy_access(plan: AccessPlan, template: str, iam: Any, change_sets: ChangeSets) -> Stack:
    """Deploy the stack of a repository; again, it goes on where it failed.

    Raises:
        RefusedError: it was not confirmed, or not deployed.
        ClientError, BotoCoreError: a call failed.
    """
    parameters = dict(plan.parameters)
    if plan.needs_provider:
        parameters[_PROVIDER] = create_github_provider(iam)
    return change_sets.deploy(plan.name, template, parameters, plan.before)
