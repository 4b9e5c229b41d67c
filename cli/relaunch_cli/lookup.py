"""Finding what a command names: its stack, a job, a definition, an instance type; errors name the nearest one."""

from typing import TYPE_CHECKING, NoReturn, TypeVar

import typer

from relaunch.core.definitions.containers import main_of
from relaunch_cli import exit_codes
from relaunch_cli.aws.connection import AwsConnection
from relaunch_cli.errors import CommandError, did_you_mean
from relaunch_cli.views.screen import print_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from relaunch.core.definitions.definition import JobDefinition
    from relaunch.core.definitions.ownership import RegisteredDefinition
    from relaunch.core.jobs.attempt import Attempt
    from relaunch.core.jobs.job import Job
    from relaunch.core.jobs.runs import JobRuns, Run
    from relaunch.core.offerings.instance_types import InstanceType
    from relaunch.ports import Dependencies, JobHistory, JobListing
    from relaunch_cli.aws.connected import Connection

Loaded = TypeVar("Loaded")
AnyAttempt = TypeVar("AnyAttempt", "Attempt", "Run")
MOST_OPEN = 10_000
"""More open jobs than MaxRunningJobs and MaxWaitingJobs of a stack let in."""
LATEST = "-"
"""Stands for the newest job."""
_RECENT_JOBS = 100
_NAMED_JOBS = 5


def connect(context: typer.Context, stack: str, region: str = "") -> "Connection":
    """Return a connection to the stack, or the one that a test put into the context."""
    given = context.find_root().obj
    return AwsConnection(stack, region) if given is None else given


def names_stack(context: typer.Context) -> bool:
    """Return whether the caller named the stack, by --stack or RELAUNCH_STACK."""
    source = context.get_parameter_source("stack")
    return source is not None and source.name != "DEFAULT"


def load_history(deps: "Dependencies", given: str) -> "JobHistory":
    """Load everything about a job, given its ID, the beginning of it, or LATEST.

    Raises:
        CommandError: there is no such job, or there are several.
    """
    return _load(deps.jobs.load_history, given, deps.jobs)


def load_runs(jobs: "JobListing", given: str) -> "JobRuns":
    """Load the tasks of a job, given its ID, the beginning of it, or LATEST.

    Raises:
        CommandError: there is no such job, or there are several.
    """
    return _load(jobs.load_runs, given, jobs)


def load_job(deps: "Dependencies", given: str) -> "Job":
    """Load a job, given its ID, the beginning of it, or LATEST.

    Raises:
        CommandError: there is no such job, or there are several.
    """
    return _load(deps.jobs.load_job, given, deps.jobs)


def _load(load: "Callable[[str], Loaded | None]", given: str, jobs: "JobListing") -> "Loaded":
    if given == LATEST:
        given = _newest_id(jobs)
    found = load(given)
    if found is None:
        found = load(_complete_id(jobs, given))
    return found or _raise_no_job(given, ())


def _newest_id(jobs: "JobListing") -> str:
    """Return the ID of the job that was accepted last, and name it beside the result.

    Raises:
        CommandError: there is no job yet.
    """
    summaries, _ = jobs.list_jobs(1)
    if not summaries:
        raise CommandError("there is no job yet", "`relaunch submit` submits one", exit_codes.NOT_FOUND)
    print_note(f"the newest job: {summaries[0].job_id}")
    return summaries[0].job_id


def _complete_id(jobs: "JobListing", beginning: str) -> str:
    """Return the only ID of an open or recent job that begins like this.

    Raises:
        CommandError: none does, or several do.
    """
    summaries, _ = jobs.list_jobs(_RECENT_JOBS)
    known = list(dict.fromkeys([*(each.job_id for each in summaries), *jobs.load_open(MOST_OPEN)]))
    matching = [job_id for job_id in known if beginning and job_id.startswith(beginning)]
    if not matching:
        _raise_no_job(beginning, known)
    if len(matching) > 1:
        named = ", ".join(matching[:_NAMED_JOBS]) + (", …" if len(matching) > _NAMED_JOBS else "")
        raise CommandError(f"{len(matching)} jobs begin with {beginning!r}", f"give more of one: {named}")
    return matching[0]


def _raise_no_job(given: str, known: "Iterable[str]") -> NoReturn:
    hint = did_you_mean(given, known) or "`relaunch ps --all` lists all jobs"
    raise CommandError(f"there is no job {given!r}", hint, exit_codes.NOT_FOUND)


def find_attempt(number: int | None, attempts: "Sequence[AnyAttempt]", job_id: str) -> "AnyAttempt | None":
    """Return the attempt of this number; without a number the latest one, None if there is none yet.

    Raises:
        CommandError: there is no attempt of this number.
    """
    if number is None:
        return attempts[-1] if attempts else None
    found = next((each for each in attempts if each.number == number), None)
    if found is not None:
        return found
    last = len(attempts)
    hint = f"it has {last}: `relaunch show {job_id}`" if last else "it has none yet"
    raise CommandError(f"{job_id} has no attempt {number}", hint, exit_codes.NOT_FOUND)


def check_rank(rank: int, history: "JobHistory | JobRuns") -> None:
    """Check that a job has a node of this rank.

    Raises:
        CommandError: it has fewer nodes.
    """
    nodes = history.job.definition.nodes
    if rank >= nodes:
        has = f"it has {nodes}, counted from 0" if nodes > 1 else "it has one, 0: leave --rank out"
        raise CommandError(f"{history.job.job_id} has no node {rank}", has, exit_codes.NOT_FOUND)


def find_container(name: str | None, history: "JobHistory | JobRuns") -> str:
    """Return the container of this name; without a name the one whose exit code is the job's.

    Raises:
        CommandError: the task has none of this name; or has several, and the definition names none.
    """
    known = [each.name for each in history.job.revision.containers]
    if name is not None:
        if known and name not in known:
            hint = did_you_mean(name, known) or f"it has {', '.join(known)}"
            raise CommandError(f"the task has no container {name!r}", hint, exit_codes.NOT_FOUND)
        return name

    found = main_of(history.job.definition.container, known)
    if found is None:
        raise CommandError("the task has several containers", "name one with --container")
    return found


def load_definition(deps: "Dependencies", name: str) -> "JobDefinition":
    """Load a registered definition.

    Raises:
        CommandError: there is none of this name.
    """
    return deps.definitions.load_definition(name) or raise_no_definition(deps, name)


def load_registered(deps: "Dependencies", name: str) -> "RegisteredDefinition":
    """Load a registered definition with its owner.

    Raises:
        CommandError: there is none of this name.
    """
    return deps.definitions.load_registered(name) or raise_no_definition(deps, name)


def raise_no_definition(deps: "Dependencies", name: str) -> NoReturn:
    """Raise the error for a definition that is not registered, with the nearest one.

    Raises:
        CommandError: always.
    """
    known = (each.name for each in deps.definitions.list_definitions())
    hint = did_you_mean(name, known) or "`relaunch definitions` lists them, `relaunch apply` registers them"
    raise CommandError(f"there is no job definition {name!r}", hint, exit_codes.NOT_FOUND)


def find_instance_type(name: str) -> "InstanceType":
    """Return an instance type of the bundled catalogue.

    Raises:
        CommandError: there is none of this name.
    """
    from relaunch.adapters.offerings.bundled import load_catalogue  # noqa: PLC0415 - of two commands only

    catalogue = load_catalogue()
    if name not in catalogue:
        raise CommandError(f"there is no accelerated instance type {name!r}", did_you_mean(name, catalogue))
    return catalogue[name]
