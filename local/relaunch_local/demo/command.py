"""The command line of the demo, and its error messages."""

import argparse
import json
import logging
import sys
from collections.abc import Sequence

from relaunch_cli.terminal import harmless
from relaunch_cli.views.screen import TerminalConsole
from relaunch_local.demo.evidence import FILE
from relaunch_local.demo.outcome import Outcome
from relaunch_local.demo.runner import ACK_TRAINING, FAILURE_LOG, TRAINING, run_demo
from relaunch_local.demo.screen import Screen
from relaunch_local.demo.session import UnmetExpectationError
from relaunch_local.stack.build import NotBuiltError
from relaunch_local.stack.deployment import DeploymentError
from relaunch_local.stack.emulator import EmulatorError

UNEXPECTED, NOT_OPENED = 1, 2


def run(arguments: Sequence[str]) -> int:
    """Run the demo with command-line arguments; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.demo", description="The whole story on one machine")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print only a summary as JSON")
    parser.add_argument(
        "--speed", type=speed, default=40.0, help="how much faster than on AWS machines come and go (40)"
    )
    parser.add_argument("--target", choices=("ecs", "ack"), default="ecs", help="where the jobs run (ecs)")
    options = parser.parse_args(arguments)
    # Errors of the local world's threads are visible in demo.json; the terminal belongs to the demo.
    logging.basicConfig(level=logging.CRITICAL)
    outcome = Outcome(options.speed, TRAINING if options.target == "ecs" else ACK_TRAINING, options.target)
    code = run_and_report(outcome, Screen(TerminalConsole(quiet=options.as_json)))
    if options.as_json:
        print(json.dumps(outcome.summary(), indent=2))
    return code


def speed(text: str) -> float:
    """Parse the speed."""
    if not 1 <= (value := float(text)) <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not from 1 to 100")
    return value


def run_and_report(outcome: Outcome, screen: Screen) -> int:
    """Run the demo and report errors; return the exit status."""
    FAILURE_LOG.unlink(missing_ok=True)
    try:
        run_demo(outcome, screen)
    except UnmetExpectationError as error:
        return print_error(f"{error}\nwhat happened is in {FILE}, the emulator's log is in {FAILURE_LOG}", UNEXPECTED)
    except (EmulatorError, NotBuiltError, DeploymentError, OSError) as error:
        outcome.result, outcome.problem = "not opened", summarize(error)
        return print_error(outcome.problem, NOT_OPENED)
    screen.line(f"all of it is in {FILE}")
    return 0


def summarize(error: Exception) -> str:
    """Return the first line of an error; the rest, if any, is written to a file."""
    opening = "the local world cannot be opened: " if isinstance(error, OSError) else ""
    first, _, others = f"{opening}{error}".partition("\n")
    first = first.rstrip(":")
    if not others.strip():
        return first
    FAILURE_LOG.write_text(others)
    return f"{first}; what it said is in {FAILURE_LOG}"


def print_error(message: str, code: int) -> int:
    """Print an error to standard error; return the exit status."""
    print(f"demo: {harmless(message)}", file=sys.stderr)
    return code
