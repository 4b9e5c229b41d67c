"""The command line of the demo, and what it says when it cannot go on."""

import argparse
import json
import logging
import sys
from collections.abc import Sequence

from rich.console import Console

from relaunch_local.demo.evidence import FILE
from relaunch_local.demo.outcome import Outcome
from relaunch_local.demo.runner import FAILURE_LOG, TRAINING, run_demo
from relaunch_local.demo.screen import Screen
from relaunch_local.demo.session import UnmetExpectationError
from relaunch_local.stack.build import NotBuiltError
from relaunch_local.stack.deployment import DeploymentError
from relaunch_local.stack.emulator import EmulatorError

UNTRUE, UNUSABLE = 1, 2


def show(arguments: Sequence[str]) -> int:
    """Show the story, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.demo", description="The whole story on one machine")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print a summary as JSON, and nothing else")
    parser.add_argument(
        "--speed", type=speed, default=40.0, help="how much faster than on AWS machines come and go (40)"
    )
    options = parser.parse_args(arguments)
    # What the local world's threads complain about is in the evidence; on the screen it would be in the way.
    logging.basicConfig(level=logging.CRITICAL)
    outcome = Outcome(options.speed, TRAINING)
    code = run(outcome, Screen(Console(highlight=False, emoji=False, quiet=options.as_json)))
    if options.as_json:
        print(json.dumps(outcome.summary(), indent=2))
    return code


def speed(text: str) -> float:
    """Parse a speed."""
    if not 1 <= (value := float(text)) <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not from 1 to 100")
    return value


def run(outcome: Outcome, screen: Screen) -> int:
    """Perform, and return the exit status."""
    FAILURE_LOG.unlink(missing_ok=True)
    try:
        run_demo(outcome, screen)
    except UnmetExpectationError as error:
        return complain(f"{error}\nwhat happened is in {FILE}, the emulator's log is in {FAILURE_LOG}", UNTRUE)
    except (EmulatorError, NotBuiltError, DeploymentError, OSError) as error:
        outcome.result, outcome.problem = "not opened", summarize(error)
        return complain(outcome.problem, UNUSABLE)
    screen.line(f"all of it is in {FILE}")
    return 0


def summarize(error: Exception) -> str:
    """The first line of an error; the others, where there are any, go to a file."""
    opening = "the local world cannot be opened: " if isinstance(error, OSError) else ""
    first, _, others = f"{opening}{error}".partition("\n")
    first = first.rstrip(":")
    if not others.strip():
        return first
    FAILURE_LOG.write_text(others)
    return f"{first}; what it said is in {FAILURE_LOG}"


def complain(message: str, code: int) -> int:
    """Say on standard error what went wrong; return the exit status."""
    print(f"demo: {message}", file=sys.stderr)
    return code
