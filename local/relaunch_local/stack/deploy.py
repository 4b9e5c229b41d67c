"""Deploys what machines of our own need, then the application with SAM, with concurrency reserved. For `make deploy`.

Runs with the interpreter of SAM CLI's environment, which has boto3.
"""

import argparse
import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.concurrency import RESERVATIONS, Account, Reservation, plan_reservations
from relaunch_local.stack.machine_parameters import SWITCH, RefusedError, for_sam, read_parameters
from relaunch_local.stack.machines import MachineClients, prepare_machines

_CONFIG = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 2})
# CloudFormation says ValidationError for a stack or a resource that does not exist (DescribeStackResource, "Errors").
_NOT_THERE = frozenset({"ValidationError", "ResourceNotFoundException"})


class UnreadableAccountError(Exception):
    """The account's Lambda limits could not be read."""


@dataclass(frozen=True)
class Clients:
    """Clients of the services that know what is reserved."""

    functions: Any
    stacks: Any


def main() -> None:
    """Deploy with the parameters of the command line."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.stack.deploy", description=__doc__)
    parser.add_argument("--sam", required=True, help="SAM CLI's command")
    parser.add_argument(
        "parameters",
        nargs="*",
        metavar="NAME=VALUE",
        help="parameters of both stacks; Machines=off deploys the application alone",
    )
    arguments = parser.parse_args()
    settings = read_sam_configuration(REPOSITORY / "samconfig.toml")
    parameters = for_sam(_with_machines(arguments.parameters, settings))
    extra, notes = reservations(parameters, settings)
    for note in notes:
        tell(note)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [arguments.sam, "deploy", "--parameter-overrides", *parameters, *extra]
    os.execve(arguments.sam, command, environment)  # noqa: S606 - the path that the Makefile names, without a shell


def _with_machines(arguments: Sequence[str], settings: Mapping[str, Any]) -> Mapping[str, str]:
    """Deploy what machines need; return the parameters of the application's stack.

    Raises:
        SystemExit: nothing of the application was deployed; the message says why.
    """
    try:
        parameters = read_parameters(arguments)
        confirm = ask if settings.get("confirm_changeset", False) else accept
        return prepare_machines(parameters, settings["stack_name"], lambda: _connect_machines(settings), confirm, tell)
    except RefusedError as error:
        raise SystemExit(str(error)) from error
    except (BotoCoreError, ClientError) as error:
        raise SystemExit(
            f"machines of our own cannot be set up: {str(error).splitlines()[0]}; docs/machines.md says what it needs, "
            f"and {SWITCH}=off deploys the application alone"
        ) from error


def tell(text: str) -> None:
    """Print a line for whoever deploys."""
    print(text, file=sys.stderr, flush=True)


def ask(question: str) -> bool:
    """Ask whoever deploys; without an answer it is no."""
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def accept(_question: str) -> bool:
    """Say yes, where samconfig.toml has no confirm_changeset."""
    return True


def read_sam_configuration(file: Path) -> Mapping[str, str]:
    """Return SAM CLI's parameters of `deploy` in samconfig.toml: stack_name, and region and profile if they are set."""
    default = tomllib.loads(file.read_text(encoding="utf-8")).get("default", {})
    return {**default.get("global", {}).get("parameters", {}), **default.get("deploy", {}).get("parameters", {})}


def reservations(parameters: Sequence[str], settings: Mapping[str, str]) -> tuple[list[str], Sequence[str]]:
    """Return the parameters to add to these, and what to tell the user.

    If AWS does not answer, or answers something else, none is added: an existing stack keeps what it has.
    """
    given = _given(parameters)
    if all(each.parameter in given for each in RESERVATIONS):
        return [], ()
    try:
        clients = _connect(settings)
        account = read_account(clients)
        present = {each.parameter: read_reserved(each, settings["stack_name"], clients) for each in RESERVATIONS}
    except (BotoCoreError, ClientError, UnreadableAccountError) as error:
        names = " and ".join(each.parameter for each in RESERVATIONS if each.parameter not in given)
        note = (
            f"the Lambda concurrency of the account cannot be read ({str(error).splitlines()[0]}): deploying without a "
            "change of what is reserved; allow lambda:GetAccountSettings, lambda:GetFunctionConcurrency and "
            f"cloudformation:DescribeStackResource, or name {names} in PARAMETERS"
        )
        return [], (note,)
    plan = plan_reservations(account, present, given)
    return [f"{name}={amount}" for name, amount in plan.parameters.items()], plan.notes


def read_account(clients: Clients) -> Account:
    """Read the account's limits in the region.

    Raises:
        UnreadableAccountError: the answer has no limits.
        ClientError, BotoCoreError: the call failed.
    """
    limits = clients.functions.get_account_settings().get("AccountLimit", {})
    limit, unreserved = limits.get("ConcurrentExecutions"), limits.get("UnreservedConcurrentExecutions")
    if not isinstance(limit, int) or not isinstance(unreserved, int):
        raise UnreadableAccountError("GetAccountSettings answers no limits")
    return Account(limit, unreserved)


def read_reserved(reservation: Reservation, stack: str, clients: Clients) -> int:
    """Return what a function of the stack has reserved; 0 if there is no such function yet.

    Raises:
        ClientError, BotoCoreError: a call failed.
    """
    try:
        found = clients.stacks.describe_stack_resource(StackName=stack, LogicalResourceId=reservation.function)
        name = found["StackResourceDetail"].get("PhysicalResourceId")
        if not name:
            return 0
        return int(clients.functions.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions", 0))
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in _NOT_THERE:
            return 0
        raise


def _given(parameters: Sequence[str]) -> dict[str, int]:
    """Return the reservations that the user names; CloudFormation refuses what is no number."""
    pairs = (parameter.partition("=") for parameter in parameters)
    names = {each.parameter for each in RESERVATIONS}
    return {name: int(value) if value.isascii() and value.isdigit() else 0 for name, _, value in pairs if name in names}


def _connect_machines(settings: Mapping[str, str]) -> MachineClients:
    """Make the clients that machines need.

    Raises:
        BotoCoreError: no region or profile.
    """
    session = boto3.Session(region_name=settings.get("region"), profile_name=settings.get("profile"))
    make: Callable[..., Any] = session.client
    return MachineClients(*(make(each, config=_CONFIG) for each in ("ec2", "ecs", "iam", "cloudformation")))


def _connect(settings: Mapping[str, str]) -> Clients:
    session = boto3.Session(region_name=settings.get("region"), profile_name=settings.get("profile"))
    return Clients(session.client("lambda", config=_CONFIG), session.client("cloudformation", config=_CONFIG))


if __name__ == "__main__":
    main()
