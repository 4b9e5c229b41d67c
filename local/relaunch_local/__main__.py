"""The local world as a command: `python -m relaunch_local up` runs it until Ctrl-C."""

import argparse
import logging
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from relaunch_cli.aws.connection import AwsConnection
from relaunch_cli.dashboard.opening import served_dashboard
from relaunch_local.stack.build import NotBuiltError
from relaunch_local.stack.deployment import STACK, DeploymentError
from relaunch_local.stack.empty_account import empty_account
from relaunch_local.stack.emulator import EmulatorError
from relaunch_local.stack.forwarder import DeliveryFaults, Event
from relaunch_local.stack.local_world import LocalWorld, LocalWorldSettings, local_world


def main() -> None:
    """Run the local world until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local", description=__doc__)
    commands = parser.add_subparsers(required=True)
    up = commands.add_parser("up", help="run the local world until Ctrl-C")
    up.add_argument("--speed", type=float, default=40.0, help="divides the simulated delays (%(default)g)")
    up.add_argument("--duplicated", type=float, default=0.0, metavar="SHARE", help="of events delivered twice")
    up.add_argument("--reordered", type=float, default=0.0, metavar="SHARE", help="of events delivered out of order")
    up.add_argument(
        "--capacity-providers", action="store_true", help="jobs run on the cluster's, not on machines of our own"
    )
    up.add_argument(
        "--empty", action="store_true", help="an account in which nothing is deployed, for `relaunch deploy`"
    )
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    signal.signal(signal.SIGTERM, raise_keyboard_interrupt)
    delivery_faults = DeliveryFaults(duplicated=arguments.duplicated, reordered=arguments.reordered)
    try:
        settings = LocalWorldSettings(
            speed=arguments.speed,
            delivery_faults=delivery_faults,
            has_capacity_providers=arguments.capacity_providers,
        )
        (run_empty if arguments.empty else run)(settings)
    except (EmulatorError, NotBuiltError, DeploymentError) as error:
        raise SystemExit(f"relaunch_local: {error}") from error
    except KeyboardInterrupt:
        print("the local world is removed", file=sys.stderr)


def raise_keyboard_interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM like Ctrl-C."""
    raise KeyboardInterrupt


def run(settings: LocalWorldSettings) -> None:
    """Start the local world, print its environment variables, and print its events until interrupted."""
    with local_world(settings, report=lambda line: print(f"· {line}", file=sys.stderr)) as world:
        print_environment(world)
        os.environ.update(world.environment())
        with served_dashboard(AwsConnection(STACK), STACK) as url:
            print(f"Or look at it: {url}\n", file=sys.stderr)
            with world.simulator.clock.lock:
                world.simulator.subscribe(print_event)
            threading.Event().wait()


def run_empty(settings: LocalWorldSettings) -> None:
    """Start an empty account, print its environment variables, and join what is deployed in it, until interrupted."""
    with empty_account(settings) as account:
        print_exports(account.environment())
        print(
            "\nPaste the lines above into another terminal, and try there, in this folder:\n"
            "  relaunch deploy\n"
            "and in the repository of a training: relaunch init, git commit, relaunch local push (docs/local.md).\n"
            "Ctrl-C here ends everything.\n",
            file=sys.stderr,
        )
        simulator = account.server.simulator
        with simulator.clock.lock:
            simulator.subscribe(print_event)
        joined = None
        while True:
            # An update, or a deployment after `relaunch uninstall`, has other functions, roles and rules.
            if (found := account.find_deployed()) is not None and found != joined:
                account.join_deployed(found)
                print("· the stack is deployed, and events are delivered", file=sys.stderr, flush=True)
                joined = found
            time.sleep(1)


def print_environment(world: LocalWorld) -> None:
    """Print the variables to export and the commands to try."""
    deployed = world.deployment
    print_exports(
        {
            **world.environment(),
            "RELAUNCH_WEBHOOK_URL": deployed.webhook_url,
            "RELAUNCH_JOB_API_URL": deployed.job_api_url,
            "RELAUNCH_WEBHOOK_SECRET": deployed.webhook_secret,
        }
    )
    print(
        "\nPaste the lines above into another terminal, and try there, in this folder:\n"
        "  relaunch apply examples/relaunch.yaml\n"
        "  relaunch submit demo\n"
        "  relaunch ps\n"
        "  relaunch local interrupt JOB\n"
        "Ctrl-C here ends everything.\n",
        file=sys.stderr,
    )


def print_exports(environment: Mapping[str, str]) -> None:
    """Print what makes a terminal use this world: the variables, and the folder of the command first on its PATH."""
    for name, value in environment.items():
        print(f"export {name}={shlex.quote(value)}")
    print(f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"', flush=True)


def print_event(event: Event) -> None:
    """Print an event of ECS or EC2 on one line."""
    detail = event["detail"]
    state = detail.get("lastStatus") or detail.get("state") or detail.get("status") or ""
    subject = event["resources"][0].rsplit("/", 1)[1]
    print(f"{event['time']}  {event['detail-type']}  {subject}  {state}", file=sys.stderr)


if __name__ == "__main__":
    main()
