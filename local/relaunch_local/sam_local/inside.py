"""The run in its own namespaces: `python -m relaunch_local.sam_local` starts it."""

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from types import FrameType

from relaunch_local.sam_local.docker import DockerError, running_docker
from relaunch_local.sam_local.functions import InvocationError, serving_functions
from relaunch_local.sam_local.image import make_image
from relaunch_local.sam_local.isolation import FOLDER, furnish
from relaunch_local.sam_local.outcomes import OUTCOMES
from relaunch_local.sam_local.run import Result, run_samples
from relaunch_local.sam_local.samples import TOPIC, samples
from relaunch_local.sam_local.screen import Screen
from relaunch_local.sam_local.stage import StageError, set_stage
from relaunch_local.stack.build import NotBuiltError
from relaunch_local.stack.deployment import DeploymentError
from relaunch_local.stack.emulator import EmulatorError
from relaunch_local.stack.local_world import LocalWorldSettings, local_world
from relaunch_local.stack.training_cluster import Training

_NOT_RUN = (DockerError, EmulatorError, NotBuiltError, DeploymentError, InvocationError, StageError, OSError)
# One for each sample that ends what runs, and one that the others are about.
RUNNING_JOBS = 8
# Machines come within two seconds; their tasks do not end by themselves.
SPEED = 100.0
TRAINING = Training(steps=100_000, step_delay_seconds=1.0)
UNEXPECTED = 1
NOT_RUN = 2
INTERRUPTED = 130


def main() -> int:
    """Run all samples; return the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true", dest="as_json")
    screen = Screen(as_json=parser.parse_args().as_json)
    logging.basicConfig(level=logging.CRITICAL)
    signal.signal(signal.SIGTERM, raise_keyboard_interrupt)
    try:
        results = run(screen)
    except _NOT_RUN as error:
        print(f"sam-local: {error}", file=sys.stderr)
        return NOT_RUN
    except KeyboardInterrupt:
        print("\nsam-local: interrupted; the containers and the local world are removed", file=sys.stderr)
        return INTERRUPTED
    screen.summary(results)
    return UNEXPECTED if any(each.has_failed for each in results) else 0


def raise_keyboard_interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM like Ctrl-C."""
    raise KeyboardInterrupt


def run(screen: Screen) -> Sequence[Result]:
    """Start everything, invoke all samples, and end everything; return the results."""
    furnish()
    with ExitStack() as stack:
        screen.progress("starting a Docker daemon, and making the base image of this interpreter")
        docker = stack.enter_context(running_docker(FOLDER / "docker"))
        make_image(docker)
        settings = LocalWorldSettings(
            speed=SPEED, training=TRAINING, hosts=[docker.gateway()], parameters={"SnsTopicArns": TOPIC}
        )
        world = stack.enter_context(local_world(settings, screen.progress))
        screen.progress(f"registering the job definition, and running {RUNNING_JOBS} jobs")
        stage = set_stage(world, RUNNING_JOBS)
        invoked = samples()
        names = {each: world.deployment.resources[each] for each in sorted(set(invoked.values()))}
        functions = stack.enter_context(serving_functions(docker, world, names, FOLDER / "functions"))
        screen.progress(f"invoking {len(invoked)} samples; a function's first one starts its container")
        return run_samples(functions, stage, invoked, OUTCOMES, screen.result)


if __name__ == "__main__":
    sys.exit(main())
