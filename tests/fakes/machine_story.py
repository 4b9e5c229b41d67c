"""A story on machines of our own: EC2 Fleet, the machines queue, and the registration of instances."""

from datetime import timedelta
from typing import Any

from fakes.builders import make_offering
from fakes.fleet import FakeMachineQueue, FakeMachineSource
from fakes.sources import FakeOfferings
from fakes.story import SHA, Story, push
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.launches.instance_events import InstanceEvent, InstanceEventKind
from relaunch.core.launches.launch import Node, NodeObservation
from relaunch.core.machines.events import InstanceState
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Machine, MachineState, Resources
from relaunch.core.machines.settings import LaunchTemplate, MachineSettings
from relaunch.core.offerings.instance_types import AmiKind
from relaunch.core.offerings.offering import Offering, OfferingKey
from relaunch.usecases.make_ec2_calls import make_ec2_calls
from relaunch.usecases.observe_capacity import observe_capacity
from relaunch.usecases.observe_machine import observe_machine
from relaunch.usecases.reconcile_machines import reconcile_machines, sweep_instances

STACK = "relaunch"
SETTINGS = MachineSettings(
    STACK,
    subnets={"us-east-1a": "subnet-a", "us-east-1b": "subnet-b"},
    launch_templates={AmiKind.GPU: LaunchTemplate("lt-0a", "7"), AmiKind.NEURON: LaunchTemplate("lt-0b", "3")},
)
G5 = OfferingKey("g5.xlarge", "us-east-1a", PurchaseOption.SPOT)
G6 = OfferingKey("g6.xlarge", "us-east-1b", PurchaseOption.SPOT)
G6_DEMAND = OfferingKey("g6.xlarge", "us-east-1b", PurchaseOption.ON_DEMAND)
FIRST_TIER = (G5, G6)


def make_own_offering(key: OfferingKey, usd_per_hour: float) -> Offering:
    """Build the offering of a machine of our own."""
    return make_offering(
        key.instance_type,
        key.purchase,
        zone=key.zone,
        price_usd_per_hour=usd_per_hour,
        capacity_provider=None,
        is_own_machine=True,
    )


class MachineStory(Story):
    """A story whose jobs run on machines of our own: G5 or G6 on spot in one request, then G6 on demand."""

    def __init__(self, *definitions: JobDefinition, **limits: Any) -> None:
        fleet, queue = FakeMachineSource(STACK), FakeMachineQueue()
        offerings = FakeOfferings(
            make_own_offering(G5, 0.40), make_own_offering(G6, 0.42), make_own_offering(G6_DEMAND, 1.10)
        )
        super().__init__(
            *definitions,
            fleet=fleet,
            machine_queue=queue,
            offerings=offerings,
            machine_settings=SETTINGS,
            limits=StackLimits(machines=MachineLimits(**limits)),
        )
        self.fleet, self.queue, self.offerings = fleet, queue, offerings

    def make_ec2_calls(self) -> int:
        """Deliver what is in the machines queue now, once its delay has passed; return the number of messages."""
        requested, self.queue.requested = self.queue.requested, []
        self.clock.advance(max((delay for _, delay in requested), default=0))
        for machine_id, _ in requested:
            make_ec2_calls(machine_id, self.deps)
        return len(requested)

    def settle_all(self) -> None:
        """Deliver what is in the queues of launches and of machines until both are empty."""
        for _ in range(50):
            if not self.deliver() + self.make_ec2_calls():
                return
        raise AssertionError(f"messages go on for ever: {self.launches.requested[:3]} {self.queue.requested[:3]}")

    def load(self, machine_id: str) -> Machine:
        """Return a machine."""
        machine = self.deps.machines.load_machine(machine_id)
        assert machine is not None
        return machine

    def machine(self, job_id: str) -> Machine:
        """Return the machine that a job claims for its next placement, or else that of its current one."""
        job = self.job(job_id)
        return self.load(job.machine_id or job.current_attempt.placement.machine_id)

    def register(self, machine: Machine, gpus: float = 1.0, neuron_devices: int = 0, *, is_told: bool = True) -> None:
        """Let the instance of a machine register with these devices; without `is_told` the event is lost."""
        assert machine.instance_id is not None
        assert machine.offering is not None
        name = f"node-of-{machine.instance_id}"
        node = Node(name, machine.instance_id, machine.offering.instance_type, machine.offering.zone)
        self.tasks.instances[name] = node
        self.tasks.registered[name] = Resources(4096, 15_000, gpus, neuron_devices)
        if is_told:
            seen = NodeObservation(node, is_active=True, registered_at=self.now, registered=self.tasks.registered[name])
            observe_machine(seen, self.deps)

    def start(self, sha: str = SHA) -> str:
        """Let a push start a job, and its machine be launched; return the job's id."""
        job_id = self.submit_and_deliver(push(sha))
        self.make_ec2_calls()
        return job_id

    def place(self, sha: str = SHA) -> str:
        """Let a push start a job whose task is placed on its machine, and does not run yet; return the job's id."""
        job_id = self.start(sha)
        self.register(self.machine(job_id))
        self.settle_all()
        return job_id

    def train(self, sha: str = SHA) -> str:
        """Let a push start a job whose task runs on its machine; return the job's id."""
        job_id = self.place(sha)
        self.run(job_id)
        return job_id

    def leave_warm(self) -> str:
        """Train one job to its end; return the ID of its machine, which is kept."""
        job_id = self.train()
        machine_id = self.machine(job_id).machine_id
        self.end(job_id)
        self.settle_all()
        assert self.load(machine_id).state is MachineState.READY
        return machine_id

    def look(self, after: timedelta = timedelta(0)) -> int:
        """Let time pass and look at the machines that are due; return their number."""
        self.clock.advance(after)
        return reconcile_machines(self.deps)

    def sweep(self) -> int:
        """Compare the instances with the machines; return how many leaked."""
        return sweep_instances(self.deps)

    def recommend_rebalance(self, instance_id: str) -> None:
        """Deliver a rebalance recommendation."""
        event = InstanceEvent(InstanceEventKind.REBALANCE_RECOMMENDATION, instance_id, at=self.now)
        observe_capacity(event, self.deps)

    @property
    def running_instances(self) -> set[str]:
        """Return the IDs of the instances that EC2 has not ended."""
        return {each.instance_id for each in self.fleet.instances.values() if each.state is InstanceState.RUNNING}

    @property
    def count(self) -> int:
        """Return how many machines count against the limits."""
        return self.deps.machines.load_totals().machines

    def assert_over(self, machine_id: str) -> None:
        """Check that a machine is gone, its place in the counters is free, and no instance is left."""
        assert self.load(machine_id).state is MachineState.GONE
        assert self.load(machine_id).pending == ()
        assert self.running_instances == set()
        totals = self.deps.machines.load_totals()
        assert (totals.machines, totals.micro_usd_per_hour) == (0, 0)
