"""What the shell completes: the IDs of jobs, names of definitions and scopes of budgets, read from the stack."""

import re
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import typer

from relaunch_cli.lookup import connect

if TYPE_CHECKING:
    from relaunch_cli.aws.connected import Connection

# A key was pressed: what is not there by then is not completed.
_SECONDS = 3.0
_RECENT_JOBS = 100

# Zsh evaluates what it is told, and the table has what others wrote.
_HARMLESS = re.compile("[A-Za-z0-9_./-]*")

Completions = list[tuple[str, str]]
"""Words, each with a description, which bash does not show."""


def complete_job(context: typer.Context, incomplete: str) -> Completions:
    """Return the IDs of the newest jobs that begin like this."""
    return _complete(context, incomplete, _read_jobs)


def complete_definition(context: typer.Context, incomplete: str) -> Completions:
    """Return the names of the registered definitions that begin like this."""
    return _complete(context, incomplete, _read_definitions)


def complete_scope(context: typer.Context, incomplete: str) -> Completions:
    """Return the scopes of budgets that begin like this: those there are, and those of registered definitions."""
    return _complete(context, incomplete, _read_scopes)


def complete_budget(context: typer.Context, incomplete: str) -> Completions:
    """Return the scopes of the budgets with a limit that begin like this."""
    return _complete(context, incomplete, _read_budgets)


def _read_scopes(connection: "Connection") -> Completions:
    definitions = [(f"definition/{name}", "") for name, _ in _read_definitions(connection)]
    return list(dict.fromkeys([("stack", ""), *definitions, *_read_budgets(connection)]))


def _read_budgets(connection: "Connection") -> Completions:
    budgets = connection.deps.budgets.load_budgets()
    return [(each.scope, "") for each in budgets if each.monthly_usd is not None or each.total_usd is not None]


def _read_jobs(connection: "Connection") -> Completions:
    summaries, _ = connection.jobs.list_jobs(_RECENT_JOBS)
    return [(summary.job_id, summary.state.value) for summary in summaries]


def _read_definitions(connection: "Connection") -> Completions:
    return [(each.name, each.task_definition) for each in connection.deps.definitions.list_definitions()]


def _complete(
    context: typer.Context, incomplete: str, read: "Callable[[Connection], Iterable[tuple[str, str]]]"
) -> Completions:
    """Return what can be read in time; an error completes nothing, and has no place to be shown."""
    found: Completions = []

    def run() -> None:
        try:
            connection = connect(context, context.params.get("stack") or "")
            found.extend(
                each
                for each in read(connection)
                if each[0].startswith(incomplete) and all(map(_HARMLESS.fullmatch, each))
            )
        except Exception:  # noqa: BLE001, S110 - see above
            pass

    reader = threading.Thread(target=run, daemon=True)
    reader.start()
    reader.join(_SECONDS)
    return list(found)
