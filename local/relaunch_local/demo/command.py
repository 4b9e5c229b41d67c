"""The command line of the demo, and its error messages."""

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from itertools import dropwhile, takewhile
from pathlib import Path

from relaunch_cli.terminal import harmless
from relaunch_cli.views.screen import TerminalConsole
from relaunch_local.demo.evidence import FILE
from relaunch_local.demo.gang import training as gang_training
from relaunch_local.demo.outcome import Outcome
from relaunch_local.demo.picture import draw, pace
from relaunch_local.demo.recording import Printed, RecordingConsole
from relaunch_local.demo.runner import FAILURE_LOG, POD_TRAINING, STORIES, TRAINING, run_demo
from relaunch_local.demo.screen import Screen
from relaunch_local.demo.session import UnmetExpectationError
from relaunch_local.demo.story import PUSH_END_HEADING, UPLOAD_HEADING
from relaunch_local.stack.build import NotBuiltError
from relaunch_local.stack.deployment import DeploymentError
from relaunch_local.stack.emulator import EmulatorError
from relaunch_local.stack.training_cluster import Training

UNEXPECTED = 1
NOT_OPENED = 2
MOST_NODES = 8
"""Each is two processes with PyTorch, and the stack's limit lets twice as many machines live at once."""
PICTURE_COLUMNS = 100
AFTER_PICTURE = "The timeline of"
SPEED = 80.0
SPEED_OF_GANGS = 40.0
"""Their machines wait for each other, and more processes start at once."""
PICTURE_DESCRIPTION = (
    "A recorded run of the demo: the application is deployed on this machine, a signed push starts a job, the "
    "selection and the requests to EC2 and ECS are shown; then a spot warning comes, the training saves its work, and "
    "resumes on another machine."
)


def run(arguments: Sequence[str]) -> int:
    """Run the demo with command-line arguments; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.demo", description="The whole story on one machine")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print only a summary as JSON")
    parser.add_argument(
        "--speed",
        type=speed,
        help=f"how much faster than on AWS machines come and go ({SPEED:g}, and {SPEED_OF_GANGS:g} with --nodes)",
    )
    parser.add_argument("--picture", type=Path, help="draw the first story as an animated SVG into this file")
    parser.add_argument(
        "--target", choices=[str(each) for each in STORIES], default="ecs", help="where the jobs run (ecs)"
    )
    parser.add_argument(
        "--nodes", type=node_count, default=1, help="the story of a training over 2 to 8 machines instead (ecs, Linux)"
    )
    options = parser.parse_args(arguments)
    if options.nodes > 1:
        if options.target != "ecs":
            parser.error(f"a job with several machines runs on ecs, not on {options.target}")
        try:
            gang_training.require_ranks()
        except gang_training.NoRanksError as error:
            return print_error(str(error), NOT_OPENED)
    # Errors of the local world's threads are visible in demo.json; the terminal belongs to the demo.
    logging.basicConfig(level=logging.CRITICAL)
    usual = SPEED_OF_GANGS if options.nodes > 1 else SPEED
    outcome = Outcome(options.speed or usual, training_of(options.target, options.nodes), options.target, options.nodes)
    recording = RecordingConsole(PICTURE_COLUMNS) if options.picture else None
    code = run_and_report(outcome, Screen(recording or TerminalConsole(quiet=options.as_json)))
    if recording and code == 0:
        options.picture.write_text(draw_first_story(recording.printed), encoding="utf-8")
    if options.as_json:
        print(json.dumps(outcome.summary(), indent=2))
    return code


def training_of(target: str, nodes: int) -> Training:
    """Return the settings of the training."""
    if nodes > 1:
        return gang_training.TRAINING
    return TRAINING if target == "ecs" else POD_TRAINING


def draw_first_story(printed: Sequence[Printed]) -> str:
    """Return the picture of what was printed before the timeline of the first story, without the second one."""
    before = list(takewhile(lambda each: not _has(each, AFTER_PICTURE), printed))
    first = list(takewhile(lambda each: not _has(each, UPLOAD_HEADING), before))
    end = dropwhile(lambda each: not _has(each, PUSH_END_HEADING), before[len(first) :])
    return draw(pace([*first, *end]), PICTURE_COLUMNS, "make demo", PICTURE_DESCRIPTION)


def _has(printed: Printed, text: str) -> bool:
    return any(text in line.plain for line in printed.lines)


def speed(text: str) -> float:
    """Parse the speed."""
    if not 1 <= (value := float(text)) <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not from 1 to 100")
    return value


def node_count(text: str) -> int:
    """Parse the number of machines."""
    if not 1 <= (value := int(text)) <= MOST_NODES:
        raise argparse.ArgumentTypeError(f"{text} is not from 1 to {MOST_NODES}")
    return value


def run_and_report(outcome: Outcome, screen: Screen) -> int:
    """Run the demo and report errors; return the exit status."""
    FAILURE_LOG.unlink(missing_ok=True)
    try:
        run_demo(outcome, screen)
    except UnmetExpectationError as error:
        return print_error(f"{error}\nwhat happened is in {FILE}, the emulator's log is in {FAILURE_LOG}", UNEXPECTED)
    except (EmulatorError, NotBuiltError, DeploymentError, OSError) as error:
        outcome.result = "not opened"
        outcome.problem = summarize(error)
        return print_error(outcome.problem, NOT_OPENED)
    screen.line(f"all of it is in {FILE}")
    screen.line("your own training next, on this machine: docs/local.md; on AWS: docs/deploy.md")
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
