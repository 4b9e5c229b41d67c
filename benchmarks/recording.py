"""Records the lives of two jobs: the events that the built functions are invoked with, and their calls to AWS.

The first runs by capacity providers and is interrupted, the second on a machine of our own.

AWS is moto and the ECS simulator behind the replay server, which records the calls.
"""

import json
import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

from benchmarks.built_functions import SECRET, TABLE, environment, handling
from benchmarks.certificates import write_certificate
from benchmarks.errors import NotMeasurableError
from benchmarks.fork_server import ForkServer
from benchmarks.replay_server import Exchange, ReplayServer, serve_replay
from fakes import webhook
from fakes.aws import create_jobs_table
from relaunch.adapters.aws.dynamodb.snapshot_item import DynamoDbSnapshots
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.stop_reason import NOTICE_LEAD
from relaunch_local.ecs import Clock, EcsServer, EcsSimulator, Script, ScriptedProcesses
from relaunch_local.repository import REPOSITORY
from relaunch_local.request_guard.credentials import Credentials
from relaunch_local.request_guard.guard import RequestGuard
from relaunch_local.stack.account import CHECKPOINTS, push_image
from relaunch_local.stack.emulator import REGION, Emulator
from relaunch_local.stack.training_cluster import Training, provision_cluster, regional_snapshot, simulator_settings

# The simulator's delays become milliseconds, so that its clock stays close to real time.
SPEED = 1000.0
# A minute in which it sweeps neither the cluster nor instances: the same whenever it is measured.
BETWEEN_SWEEPS = {"source": "aws.events", "time": "2026-03-14T09:27:00Z"}


def example_definitions() -> list[JobDefinition]:
    """Return the job definitions of examples/."""
    file = REPOSITORY / "examples" / "relaunch.yaml"
    return parse_definitions(file.read_text(), file.name, load_catalogue())


@dataclass(frozen=True)
class Step:
    """An event that a function was invoked with, and the calls that it made.

    `has_machines`: the function has the settings of a stack with machines of its own, and no capacity providers.
    """

    function: str
    situation: str
    event: object
    exchanges: tuple[Exchange, ...]
    has_machines: bool = False

    @property
    def services(self) -> tuple[str, ...]:
        """The called services by boto3's names."""
        return tuple(sorted({exchange.service for exchange in self.exchanges}))


@dataclass(frozen=True)
class Recording:
    """All steps in order, and the server that can replay them."""

    steps: tuple[Step, ...]
    server: ReplayServer
    bundle: Path
    folder: Path

    def step(self, function: str, situation: str) -> Step:
        """Return a step."""
        return next(step for step in self.steps if (step.function, step.situation) == (function, situation))


@contextmanager
def record_calls() -> Iterator[Recording]:
    """Record all steps; yield the recording, which can be replayed.

    Raises:
        NotBuiltError: the application is not built, or has changed since.
        NotMeasurableError: a function did not do what is to be measured.
    """
    with tempfile.TemporaryDirectory(prefix="relaunch-benchmarks-") as name:
        folder = Path(name)
        certificate, bundle = write_certificate(folder)
        with serve_replay(certificate) as server:
            with ForkServer(environment("launch_attempt", server.url, bundle)) as processes:
                recorder = _Recorder(server, bundle, folder, processes)
                with _upstreams(recorder):
                    recorder.record()
            yield Recording(tuple(recorder.steps), server, bundle, folder)


@contextmanager
def _upstreams(recorder: "_Recorder") -> Iterator[None]:
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # moto's server logs every request
    clock = Clock(datetime.now(UTC), speed=SPEED)
    processes = ScriptedProcesses(clock, lambda _spec: Script(runtime_seconds=None))
    simulator = EcsSimulator(clock, processes, simulator_settings(), on_event=recorder.events.append)
    server = EcsServer(simulator, RequestGuard({"AKIDEXAMPLE": "secret"}.get))
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    provision_cluster(simulator, Training(), "AKIDEXAMPLE")
    server.start()
    moto.start()
    try:
        host, port = moto.get_host_and_port()
        recorder.upstreams = {"ecs": server.url, "ec2": server.url, "*": f"http://{host}:{port}"}
        recorder.simulator = simulator
        recorder.processes = processes
        yield
    finally:
        moto.stop()
        server.close()


class _Recorder:
    """Invokes the functions one after the other, and advances the simulator's clock in between."""

    simulator: EcsSimulator
    processes: ScriptedProcesses

    def __init__(self, server: ReplayServer, bundle: Path, folder: Path, processes: ForkServer) -> None:
        self.steps: list[Step] = []
        self.events: list[dict[str, Any]] = []
        self.upstreams: dict[str, str] = {}
        self._server = server
        self._bundle = bundle
        self._folder = folder
        self._processes = processes
        self._clients: dict[str, Any] = {}
        self._has_machines = False

    def record(self) -> None:
        """Record all steps; most messages are delivered twice, as SQS may do."""
        self._prepare()
        push = json.loads((webhook.EVENTS / "function-url.github-push.json").read_text())
        self._invoke("github_webhook", "signed push", push)
        self._invoke_twice("submit_job", "push", _batch(self._receive("intake")))
        launch = self._receive("attempts")
        job_id = json.loads(launch)["job_id"]
        self._invoke_twice("launch_attempt", "first launch", _batch(launch))
        self._pass_time()
        self._invoke_twice("observe_task", "task runs", _batch(self._task_event("RUNNING")))
        self._interrupt(job_id)
        self._invoke_twice("launch_attempt", "relaunch", _batch(self._receive("attempts")))
        self._pass_time()
        self._invoke("observe_task", "task runs again", _batch(self._task_event("RUNNING")))
        self._invoke("reconcile", "nothing is due", BETWEEN_SWEEPS)
        self._make_due(job_id)
        self._invoke("reconcile", "one job is due", BETWEEN_SWEEPS)
        self._invoke("job_api", "show", {"action": "show", "job_id": job_id})
        self._invoke_twice("job_api", "submit", {"action": "submit", "definition": "demo", "idempotency_key": "bench"})
        definitions = (REPOSITORY / "examples" / "relaunch.yaml").read_text()
        self._invoke("plan_api", "compare a file", {"action": "compare", "definitions": definitions})
        waiting_id = json.loads(self._receive("attempts"))["job_id"]
        self._invoke_twice("job_api", "cancel", {"action": "cancel", "job_id": waiting_id})
        self._finish()
        self._record_machine()

    def _record_machine(self) -> None:
        """Record a second job, on a machine of our own that ends with it."""
        self._has_machines = True
        snapshots = DynamoDbSnapshots(self._client("dynamodb"), TABLE)
        snapshots.save_snapshot(regional_snapshot(datetime.now(UTC)))
        # The first job left requests of launches.
        sqs = self._client("sqs")
        sqs.purge_queue(QueueUrl=sqs.get_queue_url(QueueName="attempts")["QueueUrl"])
        submitted = {"action": "submit", "definition": "demo", "idempotency_key": "bench-machine"}
        self._invoke("job_api", "submit for a machine", submitted)
        self._invoke_twice("launch_attempt", "machine is requested", _batch(self._receive("attempts")))
        request = self._receive("machines")
        self._invoke_twice("request_machine", "EC2 Fleet is asked", _batch(request))
        self._pass_time()
        self._invoke_twice("observe_task", "machine registers", _batch(self._machine_event(json.loads(request))))
        self._invoke_twice("launch_attempt", "machine is ready", _batch(self._receive("attempts")))
        self._pass_time()
        self._invoke("observe_task", "task runs on the machine", _batch(self._task_event("RUNNING")))
        self._finish("task on the machine finished")
        self._invoke_twice("request_machine", "machine is ended", _batch(self._receive("machines")))

    def _interrupt(self, job_id: str) -> None:
        self._save_checkpoint(job_id)
        running = [host for host in self.simulator.instances.by_id.values() if host.tasks]
        with self.simulator.clock.lock:
            # The functions have the real clock: on a busy machine StopTask would be answered with a time before it.
            self.simulator.clock.advance_to(datetime.now(UTC))
            self.simulator.interrupt(running[0].instance_id)
        warning = next(each for each in self.events if "Interruption Warning" in each["detail-type"])
        self._invoke_twice("observe_capacity", "spot warning", _batch(json.dumps(warning, default=str)))
        self._pass_time()
        self._invoke_twice("observe_task", "interrupted task stopped", _batch(self._task_event("STOPPED")))

    def _finish(self, situation: str = "task finished") -> None:
        with self.simulator.clock.lock:
            self.processes.started[-1].on_exit(0, None)
        self._pass_time()
        self._invoke("observe_task", situation, _batch(_settled(self._task_event("STOPPED"))))

    def _prepare(self) -> None:
        create_jobs_table(self._client("dynamodb"), TABLE)
        for queue in ("intake", "attempts", "machines", "dead-letters"):
            self._client("sqs").create_queue(QueueName=queue)
        self._client("secretsmanager").create_secret(Name=SECRET, SecretString=webhook.SECRET)
        self._client("s3").create_bucket(Bucket=CHECKPOINTS, CreateBucketConfiguration={"LocationConstraint": REGION})
        push_image(Emulator(self.upstreams["*"], Credentials("testing", "testing")))
        for definition in example_definitions():
            self._stores.definitions.save_definition(definition)

    def _invoke_twice(self, function: str, situation: str, event: object) -> None:
        self._invoke(function, situation, event)
        self._invoke(function, f"{situation}, delivered again", event)

    def _invoke(self, function: str, situation: str, event: object) -> None:
        self._server.record(self.upstreams)
        code = handling(function, event, self._folder)
        has_machines = self._has_machines
        self._processes.run(code, environment(function, self._server.url, self._bundle, has_machines=has_machines))
        self.steps.append(Step(function, situation, event, tuple(self._server.recorded), has_machines))

    def _pass_time(self) -> None:
        with self.simulator.clock.lock:
            self.simulator.clock.advance(600 / SPEED)

    def _task_event(self, status: str) -> str:
        tasks = [each for each in self.events if each["detail-type"] == "ECS Task State Change"]
        return json.dumps(next(each for each in reversed(tasks) if each["detail"]["lastStatus"] == status), default=str)

    def _machine_event(self, request: Mapping[str, str]) -> str:
        machine = self._stores.machines.load_machine(request["machine_id"])
        nodes = [each for each in self.events if each["detail-type"] == "ECS Container Instance State Change"]
        ours = [each for each in nodes if machine and each["detail"]["ec2InstanceId"] == machine.instance_id]
        if not ours:
            raise NotMeasurableError(f"the instance of {request['machine_id']} did not register")
        return json.dumps(ours[-1], default=str)

    def _receive(self, queue: str) -> str:
        sqs = self._client("sqs")
        url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        messages = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=2, MaxNumberOfMessages=10).get("Messages", [])
        if not messages:
            last = self.steps[-1]
            calls = ", ".join(f"{exchange.operation} {exchange.status}" for exchange in last.exchanges)
            raise NotMeasurableError(
                f"{last.function} ({last.situation}) left nothing in the queue {queue}; it called {calls}"
            )
        # An event that was delivered again may have sent the message again.
        for message in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return str(messages[0]["Body"])

    def _save_checkpoint(self, job_id: str) -> None:
        prefix = f"demo/{job_id}/attempt-1/step-0000120"
        manifest = {"format": 1, "step": 120, "attempt": 1, "objects": [{"key": "state.json", "size": 2}]}
        for name, body in (("state.json", "{}"), ("manifest.json", json.dumps(manifest))):
            self._client("s3").put_object(Bucket=CHECKPOINTS, Key=f"{prefix}/{name}", Body=body.encode())

    def _make_due(self, job_id: str) -> None:
        job = self._stores.jobs.load_job(job_id)
        if job is not None:
            self._stores.jobs.save_job(Decision(replace(job, wake_at=datetime.now(UTC) - timedelta(seconds=1))))

    @cached_property
    def _stores(self) -> DynamoDbStores:
        return DynamoDbStores(self._client("dynamodb"), TABLE)

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            session: Any = boto3.Session("testing", "testing", region_name=REGION)
            self._clients[service] = session.client(service, endpoint_url=self.upstreams["*"])
        return self._clients[service]


def _settled(event: str) -> str:
    """Return the event of a task that ended so long ago that its end is judged at once, and need not come again."""
    told = json.loads(event)
    for name in ("executionStoppedAt", "stoppingAt", "stoppedAt"):
        if name in told["detail"]:
            earlier = datetime.fromisoformat(told["detail"][name]) - 2 * NOTICE_LEAD
            told["detail"][name] = earlier.isoformat()
    return json.dumps(told)


def _batch(body: str) -> object:
    """Return an SQS event with one message."""
    event: dict[str, Any] = json.loads((webhook.EVENTS / "sqs.intake.github-push.json").read_text())
    event["Records"][0]["body"] = body
    return event
