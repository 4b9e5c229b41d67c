"""A stack of fakes that requests machines of its own, for the command."""

from dataclasses import replace
from typing import Any

from fakes.builders import make_offering
from fakes.cli_session import CliSession
from fakes.fleet import STACK, FakeMachineQueue, FakeMachineSource
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.launches.instance_events import InstanceEvent, InstanceEventKind
from relaunch.core.launches.launch import Node, NodeObservation
from relaunch.core.machines.machine import Machine, Resources
from relaunch.core.machines.settings import LaunchTemplate, MachineSettings
from relaunch.core.offerings.instance_types import AmiKind
from relaunch.core.offerings.offering import Offering
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch.usecases.make_ec2_calls import make_ec2_calls
from relaunch.usecases.observe_capacity import observe_capacity
from relaunch.usecases.observe_machine import observe_machine
from relaunch.usecases.observe_task import observe_task

SITE = MachineSettings(
    STACK,
    "https://sqs.us-east-1.amazonaws.com/1/machines",
    {"us-east-1a": "subnet-a", "us-east-1b": "subnet-b"},
    {AmiKind.GPU: LaunchTemplate("lt-0123456789abcdef0", "7")},
    "arn:aws:iam::111122223333:role/relaunch/machines",
    disk_gib=100,
)


def own_machine(name: str, zone: str, usd_per_hour: float, **fields: Any) -> Offering:
    """Build a spot offering of a machine of our own."""
    fields = {"disk_gib": SITE.disk_gib, **fields}
    return make_offering(
        name,
        PurchaseOption.SPOT,
        zone=zone,
        price_usd_per_hour=usd_per_hour,
        capacity_provider=None,
        is_own_machine=True,
        **fields,
    )


class MachineSession(CliSession):
    """A session with machines of our own and without capacity providers; `limits` are fields of MachineLimits."""

    def __init__(self, **limits: Any) -> None:
        super().__init__()
        self.boot = ""
        """What machines report of their boot."""
        self.fleet, self.queue = FakeMachineSource(), FakeMachineQueue()
        self.offerings.available = (
            own_machine("g6.xlarge", "us-east-1a", 0.40),
            own_machine("g6.xlarge", "us-east-1b", 0.41),
            own_machine("g5.xlarge", "us-east-1a", 0.42),
        )
        machine_limits = replace(self.deps.limits.machines, **limits)
        self.deps = replace(
            self.deps,
            fleet=self.fleet,
            machine_queue=self.queue,
            machine_settings=SITE,
            limits=replace(self.deps.limits, machines=machine_limits),
        )

    def choose(self, key: str = "first") -> str:
        """Submit a job and let it choose a machine; return its ID."""
        job_id = self.submit(key)
        self.clock.advance(2)
        launch_attempt(job_id, self.deps)
        return job_id

    def make_ec2_calls(self) -> None:
        """Let EC2 be called for the machines that ask for it."""
        for machine_id, _ in tuple(self.queue.requested):
            make_ec2_calls(machine_id, self.deps)
        self.queue.requested.clear()

    def machine(self, job_id: str) -> Machine:
        """Return the machine that the job claims for its next task, else that of its task."""
        job = self.jobs.job(job_id)
        found = self.deps.machines.load_machine(job.machine_id or job.current_attempt.placement.machine_id)
        assert found is not None
        return found

    def register_node(self, job_id: str, gpus: float = 1.0) -> None:
        """Let the machine of the job register with the cluster, with so many GPUs."""
        machine = self.machine(job_id)
        assert machine.instance_id
        assert machine.offering
        name = f"node-of-{machine.instance_id}"
        node = Node(name, machine.instance_id, machine.offering.instance_type, machine.offering.zone or "")
        self.tasks.instances[name] = node
        registered = Resources(4096, 15_000, gpus)
        seen = NodeObservation(
            node, is_active=True, registered_at=self.clock.now(), registered=registered, boot=self.boot
        )
        observe_machine(seen, self.deps)

    def run_on_machine(self, job_id: str) -> str:
        """Let the job get its machine, be placed on it and run; return the ARN of its task."""
        self.make_ec2_calls()
        self.clock.advance(40)
        self.register_node(job_id)
        task_id = self.launch(job_id)
        self.clock.advance(30)
        node = next(
            each for each in self.tasks.instances.values() if each.instance_id == self.machine(job_id).instance_id
        )
        observe_task(self.tasks.run(task_id, node, started_at=self.clock.now()), self.deps)
        return task_id

    def warn(self, job_id: str) -> None:
        """Let EC2 announce the interruption of the machine of the job, which claims the next one."""
        instance_id = self.machine(job_id).instance_id or ""
        observe_capacity(
            InstanceEvent(InstanceEventKind.INTERRUPTION_WARNING, instance_id, at=self.clock.now()), self.deps
        )
        launch_attempt(job_id, self.deps)
