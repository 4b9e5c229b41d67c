"""Runs the demo: opens a local world, runs its stories, writes demo.json, closes the world."""

import os
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError
from rich.text import Text

from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.ownership import Owner
from relaunch.core.definitions.targets import Target
from relaunch.core.machines.decision import MachineTotals
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.arrange_upload_rules import settle_upload_rules, widen_upload_rules
from relaunch.usecases.register_definitions import compare_definitions, register_definitions
from relaunch_cli.aws.connection import AwsConnection
from relaunch_cli.dashboard.opening import served_dashboard
from relaunch_cli.errors import CommandError
from relaunch_local.demo import drawings, evidence
from relaunch_local.demo.ack_story import run_eviction_story, run_node_loss_story
from relaunch_local.demo.acs_story import run_default_driver_story, run_release_story
from relaunch_local.demo.gang import training as gang_training
from relaunch_local.demo.gang.story import register_task_definition, run_gang_story
from relaunch_local.demo.news import add_receiver
from relaunch_local.demo.outcome import JobResult, Outcome
from relaunch_local.demo.outside import Outside, running_outside
from relaunch_local.demo.recorder import Recorder
from relaunch_local.demo.screen import Screen
from relaunch_local.demo.session import Session, UnmetExpectationError
from relaunch_local.demo.story import run_both_stories
from relaunch_local.internet.notice_endpoint import ENDPOINT
from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.deployment import STACK
from relaunch_local.stack.local_world import LocalWorld, LocalWorldSettings, local_world
from relaunch_local.stack.training_cluster import Training

# Held early and between two checkpoints: without a warning, steps are lost.
TRAINING = Training(steps=120, step_delay_seconds=0.015, checkpoint_every=20, stop_delay_seconds=1.0, hold_at_step=35)
POD_TRAINING = replace(TRAINING, stop_delay_seconds=0.2)
EXAMPLES = REPOSITORY / "examples"
DEFINITIONS = {
    Target.ECS: EXAMPLES / "relaunch.yaml",
    Target.ACK: EXAMPLES / "relaunch-ack.yaml",
    Target.ACS: EXAMPLES / "relaunch-acs.yaml",
}
Stories = Callable[[Session, Training], Iterator[JobResult]]


def in_turn(*stories: Callable[[Session, Training], JobResult]) -> Stories:
    """Return what runs stories one after the other."""
    return lambda session, training: (run_story(session, training) for run_story in stories)


STORIES: dict[Target, Stories] = {
    Target.ECS: run_both_stories,
    Target.ACK: in_turn(run_eviction_story, run_node_loss_story),
    Target.ACS: in_turn(run_release_story, run_default_driver_story),
}
FAILURE_LOG = Path("demo-failure.log")

TIMEOUT_SECONDS = 300.0
SLOWEST_SECONDS = 900.0
"""The slowest step on AWS: scaling out from zero; divided by the speed."""

LOCAL_WORLD_ERRORS = (BotoCoreError, ClientError, TransientError, PermanentError, CommandError)


def definitions_of(outcome: Outcome) -> Path:
    """Return the file of job definitions that is registered."""
    return gang_training.DEFINITION if outcome.nodes > 1 else DEFINITIONS[Target(outcome.target)]


def stories_of(outcome: Outcome) -> Stories:
    """Return what runs the stories, and yields the end of each."""
    return in_turn(run_gang_story) if outcome.nodes > 1 else STORIES[Target(outcome.target)]


def describe_demo(outcome: Outcome) -> str:
    """Return what the demo shows, in a line."""
    what = f"a training over {outcome.nodes} machines" if outcome.nodes > 1 else "a push and an upload"
    return f"Relaunch: {what}, on this machine, without an account"


def run_demo(outcome: Outcome, screen: Screen) -> None:
    """Run the stories in a local world that is removed at the end.

    Raises:
        EmulatorError, NotBuiltError, DeploymentError, OSError: the local world cannot be opened.
        UnmetExpectationError: a story did not go as expected; see demo.json and demo-failure.log.
    """
    screen.console.print(Text(describe_demo(outcome), style="bold"))
    with ExitStack() as stack:
        stack.enter_context(without_aws_settings())
        outside = stack.enter_context(running_outside())
        screen.heading("The real template.yaml is deployed")
        local = open_world(stack, make_settings(outcome, outside), screen)
        outcome.seconds["deployed"] = screen.seconds
        session = open_session(local, screen, outcome, outside)
        screen.line("watch it in a browser, while it lasts:")
        screen.show(Text(stack.enter_context(served_dashboard(session.connection, STACK)), no_wrap=True))
        run_stories(session, outcome)
    screen.line("the local world is removed", "dim")
    outcome.seconds["ended"] = screen.seconds


def make_settings(outcome: Outcome, outside: Outside) -> LocalWorldSettings:
    """Return the settings of the demo's local world, whose functions reach what is outside."""
    is_gang = outcome.nodes > 1
    return LocalWorldSettings(
        speed=outcome.speed,
        training=outcome.training,
        target=Target(outcome.target),
        internet=outside.internet,
        github_token=outside.github.token,
        # As `relaunch deploy HostAccess=on` does.
        parameters={"NoticeHosts": ENDPOINT, **({"HostAccess": "on"} if is_gang else {})},
        has_own_disks=is_gang,
    )


def open_world(stack: ExitStack, settings: LocalWorldSettings, screen: Screen) -> LocalWorld:
    """Open a local world until the stack is closed, and show the progress."""
    with screen.status_line("one moment"):
        return stack.enter_context(local_world(settings, lambda text: screen.line(shorten_url(text))))


def shorten_url(text: str) -> str:
    """Shorten the random part of the emulator's Function URLs, which is longer than half a line."""
    return re.sub(r"(/lambda-url/)\w+/", r"\1…/", text)


@contextmanager
def without_aws_settings() -> Iterator[None]:
    """Remove the user's AWS settings and proxies from the environment, and restore them at the end."""
    environment = dict(os.environ)
    for name in environment:
        if name.upper().startswith("AWS_") or name.upper().endswith("_PROXY"):
            del os.environ[name]
    os.environ.update(AWS_CONFIG_FILE=os.devnull, AWS_SHARED_CREDENTIALS_FILE=os.devnull)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)


def open_session(local: LocalWorld, screen: Screen, outcome: Outcome, outside: Outside) -> Session:
    """Start recording, add a receiver of notices, and register the job definitions of examples/."""
    os.environ.update(local.environment())
    recorder = Recorder(lambda: evidence.read_jobs(local))
    with local.simulator.clock.lock:
        local.simulator.subscribe(recorder.record)
    timeout_seconds = TIMEOUT_SECONDS + SLOWEST_SECONDS / outcome.speed
    session = Session(local, AwsConnection(STACK), screen, recorder, timeout_seconds, outside)
    add_receiver(session)
    deps = session.deps
    file = definitions_of(outcome)
    if outcome.nodes > 1:
        register_task_definition(session, outcome.training)
    definitions = [
        with_settings(replace(each, nodes=outcome.nodes), outcome.training)
        for each in parse_definitions(file.read_text(), file.name, load_catalogue())
    ]
    name = str(file.relative_to(REPOSITORY))
    owner = Owner("", name, session.connection.caller)
    changes = compare_definitions(definitions, deps.definitions.list_registered(), owner)
    rules = session.connection.upload_rules
    widen_upload_rules(definitions, rules, session.connection.pause)
    register_definitions(changes, owner, deps)
    settle_upload_rules(deps.definitions, rules, session.connection.pause)
    screen.line(f"relaunch apply {name}: {', '.join(f'{each.name} {each.change}' for each in changes)}")
    return session


def with_settings(definition: JobDefinition, training: Training) -> JobDefinition:
    """Return a definition with the settings of the training, which on ECS the task definition has."""
    if definition.target.capabilities.takes_task_definition:
        return definition
    return replace(definition, environment={**definition.environment, **training.environment()})


def run_stories(session: Session, outcome: Outcome) -> None:
    """Run the stories and write demo.json, also when one does not go as expected.

    Raises:
        UnmetExpectationError: a story did not go as expected.
    """
    try:
        for result in stories_of(outcome)(session, outcome.training):
            outcome.endings.append(result)
            outcome.seconds[result.kind] = session.screen.seconds
        check_final_state(session)
    except (UnmetExpectationError, *LOCAL_WORLD_ERRORS) as error:
        outcome.result = "failed"
        outcome.problem = str(error)
        write_failure(session, outcome)
        raise UnmetExpectationError(str(error)) from error
    outcome.result = "succeeded"
    evidence.write_evidence(evidence.collect_evidence(session, outcome.summary()))
    session.screen.heading("Results")
    session.screen.show(drawings.draw_results(outcome.endings))
    if session.local.alibaba is None:
        session.screen.line(drawings.describe_bill(evidence.read_simulator(session.local)["bill"]))


def check_final_state(session: Session) -> None:
    """Check that no machine is left, and that the dead-letter queues are empty."""
    instances = evidence.read_simulator(session.local)["state"]["instances"]
    left = [each["instance_id"] for each in instances if each["state"] != "terminated"]
    session.require(not left, f"every machine is terminated, but not {', '.join(left)}")
    totals = session.deps.machines.load_totals()
    session.require(totals == MachineTotals(), f"no machine is counted any more, but there are {totals}")
    dead_letters = [name for name, count in evidence.read_dead_letters(session.local).items() if count]
    session.require(not dead_letters, f"no dead letters, but there are some in {', '.join(dead_letters)}")


def write_failure(session: Session, outcome: Outcome) -> None:
    """Write demo.json if possible, and the log of the emulator and its functions."""
    with FAILURE_LOG.open("w") as log:
        log.write(traceback.format_exc())
        try:
            evidence.write_evidence(evidence.collect_evidence(session, outcome.summary()))
        except LOCAL_WORLD_ERRORS:
            log.write(f"\nand then\n{traceback.format_exc()}")
        log.write(f"\n{session.local.emulator_log.read_text(errors='replace')}")
