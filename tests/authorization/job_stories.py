"""What functions do with events, requests and jobs, each by its entry point and with its role's permissions alone."""

import json
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from authorization.machine_stories import launch_instance
from authorization.stories import INDEX, Stories, make_demo
from fakes.builders import NOW, make_running_attempt, make_running_job, make_timeline_entry
from fakes.role_world import ACCOUNT, CLUSTER, FAMILY, REGION, unique
from fakes.simulated_region import container, gpu
from fakes.stored_machines import change, make_machine
from fakes.webhook import EVENTS
from relaunch.adapters.definition_file.writer import write_definitions
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.budgets import Budget, month_of
from relaunch.core.jobs.effects import (
    AdmitWaiting,
    CountRun,
    LookForWarning,
    ReleaseMachine,
    RememberCapacity,
    RequestLaunch,
    RequestMachine,
    StopTask,
)
from relaunch.core.jobs.state import WaitReason
from relaunch.core.lifecycle.job_changes import as_created
from relaunch.core.machines.machine import (
    AdmitJobs,
    AskFleet,
    DeregisterNode,
    MachineState,
    RememberFailures,
    RememberLaunch,
    TellJobs,
    TerminateInstance,
)
from relaunch.core.offerings.offering import CapacityFailure, OfferingKey
from relaunch.core.offerings.quotas import QUOTA_CODES
from relaunch.core.offerings.snapshot import Origin, SnapshotPart
from relaunch.core.offerings.spot_runs import Observed, SpotRun
from relaunch.entrypoints.consumers import CONSUMERS
from relaunch.ports import PortError
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.advance_machine import finish_effects

WEBHOOK_SECRET, INTAKE_QUEUE = "RELAUNCH_WEBHOOK_SECRET_ARN", "RELAUNCH_INTAKE_QUEUE_URL"
SPOT = OfferingKey("g5.xlarge", "us-east-1a", PurchaseOption.SPOT)
TASK = f"arn:aws:ecs:{REGION}:{ACCOUNT}:task/{CLUSTER}/0a1b2c3d4e5f60718293a4b5c6d7e8f9"
SINGLE_IMAGE = {"config": {"digest": "sha256:2"}}


def _body(sample: str) -> str:
    """Return the body of the message in a sample event."""
    return str(json.loads((EVENTS / f"{sample}.json").read_text())["Records"][0]["body"])


def tell_of_a_life_on_machines(stories: Stories) -> None:
    """A push trains on a machine of our own, which EC2 takes away; the next attempt ends well."""
    world = stories.world
    stories.deliver("submit_job", _body("sqs.intake.github-push"))
    job_id = json.loads(stories.received("AttemptsQueue"))["job_id"]
    for attempt in (1, 2):
        stories.deliver("launch_attempt", stories.received("AttemptsQueue"))
        stories.deliver("request_machine", stories.received("MachinesQueue"))
        stories.pass_time(240.0)
        stories.deliver("observe_task", stories.event("ECS Container Instance State Change"))
        stories.deliver("launch_attempt", stories.received("AttemptsQueue"))
        stories.pass_time(120.0)
        stories.deliver("observe_task", stories.event("ECS Task State Change", lastStatus="RUNNING"))
        if attempt == 1:
            _interrupt(stories, job_id)
    stories.pass_time(900.0)
    stories.deliver("observe_task", stories.event("ECS Task State Change", lastStatus="STOPPED"))
    job = world.stores.jobs.load_job(job_id)
    assert job is not None
    assert job.state.is_final, job.reason
    stories.deliver("request_machine", stories.received("MachinesQueue"))
    stories.pass_time(120.0)
    stories.deliver("request_machine", stories.received("MachinesQueue"))
    stories.reconcile()


def _interrupt(stories: Stories, job_id: str) -> None:
    world = stories.world
    stories.checkpoints += [f"demo/{job_id}/attempt-1/step-0000120/{name}" for name in ("manifest.json", "state.json")]
    host = next(each for each in world.region.simulator.instances.by_id.values() if each.tasks)
    world.region.simulator.interrupt(host.instance_id)
    stories.deliver("observe_capacity", stories.event("EC2 Spot Instance Interruption Warning"))
    # The last moment at which the task can save.
    stories.pass_time(30.0)
    stories.deliver("observe_capacity", stories.event("EC2 Spot Instance Interruption Warning"))
    stories.pass_time(300.0)
    stories.deliver("observe_task", stories.event("ECS Task State Change", lastStatus="STOPPED"))


def tell_of_suspects(stories: Stories) -> None:
    """Messages that were tried before come back one by one, should the function die of one."""
    for function in CONSUMERS:
        stories.deliver_suspects(function)
    stories.deliver_suspects("submit_job", "UploadsQueue")
    stories.deliver_suspects("submit_job", "SnsQueue")


def tell_of_effects_left_behind(stories: Stories) -> None:
    """Whoever loads a job or a machine does first what its last writer left undone."""
    world = stories.world
    stores = world.stores
    for function in ("submit_job", "job_api", "launch_attempt", "observe_capacity", "observe_task", "reconcile"):
        machine_id, job_id = unique("m"), unique("left")
        stores.machines.save_machine(change(make_machine(machine_id)))
        pending = (
            StopTask(TASK, "left undone"),
            RequestLaunch(),
            RememberCapacity(SPOT, "none", NOW, NOW + timedelta(minutes=5)),
            CountRun(SpotRun(SPOT, job_id, Observed.START, NOW)),
            AdmitWaiting(),
            LookForWarning("i-0a1b2c3d4e5f60718"),
            RequestMachine(machine_id),
            ReleaseMachine(machine_id, "left undone"),
        )
        job = make_running_job(job_id, attempt=make_running_attempt(), pending=pending, machine_id=machine_id)
        unsent = replace(as_created(job, "left undone").outbox, resend_at=job.accepted_at - timedelta(days=365))
        assert stores.jobs.create_job(replace(job, outbox=unsent), [make_timeline_entry()])
        with world.function(function) as dependencies:
            advance_job(job_id, lambda _job: None, dependencies.deps)
    for function in (*(each for each in CONSUMERS if each != "send_notices"), "job_api", "reconcile"):
        machine_id, instance_id = unique("m"), launch_instance(stories)
        effects = (
            TellJobs((unique("told"),)),
            AdmitJobs(),
            RememberFailures((CapacityFailure(SPOT, "none", NOW, NOW + timedelta(minutes=5)),)),
            RememberLaunch(SPOT, NOW),
            AskFleet(),
            TerminateInstance(instance_id),
            DeregisterNode(TASK.replace(":task/", ":container-instance/")),
        )
        machine = make_machine(machine_id, pending=effects, state=MachineState.ENDING)
        saved = stores.machines.save_machine(change(machine))
        with world.function(function) as dependencies:
            finish_effects(saved, dependencies.deps)


def tell_of_messages_that_fail(stories: Stories) -> None:
    """A message that no function can read goes to the dead-letter queue; one that comes too early goes back."""
    for function in CONSUMERS:
        stories.deliver(function, "no message")
    stories.deliver("submit_job", "no message", "SnsQueue")
    stories.world.is_throttled = True
    stories.deliver("launch_attempt", json.dumps({"job_id": "demo-1"}))
    stories.deliver("request_machine", json.dumps({"machine_id": "m-1"}))
    stories.deliver("submit_job", _body("sqs.intake.github-push"))
    stories.deliver("submit_job", _body("sqs.intake.s3"), "UploadsQueue")
    stories.deliver("submit_job", _body("sqs.sns.topic-message"), "SnsQueue")
    stories.deliver("observe_capacity", _body("sqs.warnings.spot-interruption-warning"))
    stories.deliver("observe_task", _body("sqs.task-changes.stopped-spot"))
    stories.world.is_throttled = False


def tell_of_requests(stories: Stories) -> None:
    """Whoever may invoke job_api plans, submits, shows, cancels and retries."""
    assert "plan" in stories.ask(action="plan", definition="demo")
    submitted = stories.ask(action="submit", definition="demo", idempotency_key=unique("key"))
    job_id = submitted["job"]["job_id"]
    stories.ask(action="show", job_id=job_id)
    stories.ask(action="cancel", job_id=job_id, reason="of a story")
    stories.ask(action="retry", job_id=job_id, idempotency_key=unique("key"))


def tell_of_a_budget_that_is_used_up(stories: Stories) -> None:
    """Reconcile reports a budget that is nearly used up, and launch_attempt one that has no room for a job."""
    world = stories.world
    budgets = world.stores.budgets
    budgets.set_budget(Budget("stack"), None, 100.0, {month_of(world.region.clock.now()): 85.0})
    stories.reconcile()
    budgets.set_budget(Budget("stack", None, 100.0), None, 85.0, {})
    job_id = stories.ask(action="submit", definition="demo", idempotency_key=unique("key"))["job"]["job_id"]
    stories.deliver("launch_attempt", stories.received("AttemptsQueue"))
    job = world.stores.jobs.load_job(job_id)
    assert job is not None
    assert job.waiting is not None
    assert job.waiting.reason is WaitReason.BUDGET
    budgets.set_budget(Budget("stack", None, 85.0), None, None, {})


def tell_of_a_file_that_is_planned(stories: Stories) -> None:
    """Whoever may invoke plan_api has a definition file planned."""
    (compared,) = stories.compare(write_definitions([make_demo()]))["comparison"]["definitions"]
    assert compared["plan"]["kept"] > 0
    _run_short_of_quota(stories)
    stories.compare(write_definitions([make_demo()]))


def _run_short_of_quota(stories: Stories) -> None:
    """Have a machine and a running job counted against quotas that are nearly used up."""
    stories.world.stores.machines.save_machine(change(make_machine(unique("m"))))
    job = make_running_job(unique("counted"), attempt=make_running_attempt())
    assert stories.world.stores.jobs.create_job(job, [make_timeline_entry()])
    snapshot = stories.world.snapshots.load_snapshot()
    assert snapshot is not None
    quotas = dict.fromkeys(QUOTA_CODES, 4.0)
    short = snapshot.with_part(SnapshotPart.QUOTAS, quotas, Origin("EC2", stories.world.region.clock.now()))
    stories.world.snapshots.save_snapshot(short)


def tell_of_an_image_of_one_platform(stories: Stories) -> None:
    """What such an image is for is not in its manifest, but in its configuration."""
    stories.image = SINGLE_IMAGE
    with suppress(PortError):
        stories.ask(action="submit", definition="demo", idempotency_key=unique("key"))
    for function in ("submit_job", "plan_api", "reconcile"):
        with stories.world.function(function) as dependencies, suppress(PortError):
            dependencies.deps.images.find_image("trainer", "latest")
    stories.image = INDEX


def tell_of_a_family_whose_newest_revision_is_inactive(stories: Stories) -> None:
    """Then all revisions are listed."""
    answer = stories.world.region.ecs.describe_task_definition(taskDefinition=FAMILY)
    inactive = {**answer, "taskDefinition": {**answer["taskDefinition"], "status": "INACTIVE"}}
    stories.world.answers |= {
        ("ecs", "DescribeTaskDefinition"): lambda **_: inactive,
        ("ecs", "ListTaskDefinitions"): lambda **_: {"taskDefinitionArns": []},
    }
    for function in ("submit_job", "job_api", "plan_api"):
        with stories.world.function(function) as dependencies, suppress(PortError):
            dependencies.deps.revisions.newest_active(FAMILY)
    for name in ("DescribeTaskDefinition", "ListTaskDefinitions"):
        del stories.world.answers["ecs", name]


def tell_of_old_derived_revisions(stories: Stories) -> None:
    """Reconcile deregisters the revisions that no job has used for a day."""
    tell_of_a_life_on_machines(stories)
    world = stories.world
    for _ in range(2):
        world.region.clock.advance(timedelta(days=2).total_seconds())
        stories.reconcile()


def tell_of_a_revision_that_is_run_as_it_is(stories: Stories) -> None:
    """An image that is named by its digest cannot move: there is nothing to derive."""
    image = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/trainer@sha256:{'1' * 64}"
    roles = {name: f"arn:aws:iam::{ACCOUNT}:role/relaunch/{name}" for name in ("taskRoleArn", "executionRoleArn")}
    stories.world.region.register(FAMILY, container(image=image, resourceRequirements=gpu(), stopTimeout=90), **roles)
    stories.ask(action="submit", definition="demo", idempotency_key=unique("key"))
    stories.deliver("launch_attempt", stories.received("AttemptsQueue"))
    stories.deliver("request_machine", stories.received("MachinesQueue"))
    stories.pass_time(240.0)
    stories.deliver("observe_task", stories.event("ECS Container Instance State Change"))
    stories.deliver("launch_attempt", stories.received("AttemptsQueue"))


def tell_of_a_capacity_block_that_ends(stories: Stories) -> None:
    """EC2 takes its instances 30 minutes before its end."""
    stories.deliver("observe_capacity", _body("sqs.warnings.capacity-block-expiration-warning"))
    stories.deliver("observe_capacity", _body("sqs.warnings.instance-retirement"))


def tell_of_an_event_about_a_job(stories: Stories) -> None:
    """The job that an event is about is looked up, by its ID."""
    message = json.loads(_body("sqs.intake.eventbridge"))
    message["event"]["detail"] = {"job_id": unique("ended")}
    stories.deliver("submit_job", json.dumps(message), "UploadsQueue")


def tell_of_a_delivery(stories: Stories) -> None:
    """The webhook reads its secret, and enqueues what GitHub signed."""
    variables = {name: stories.world.variable("github_webhook", name) for name in (WEBHOOK_SECRET, INTAKE_QUEUE)}
    with stories.world.webhook() as client:
        client.read_secret(variables[WEBHOOK_SECRET], "AWSCURRENT")
        client.send_message(variables[INTAKE_QUEUE], "{}")
