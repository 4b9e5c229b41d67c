"""The account of a load run: many jobs, and no faults except the account's limits."""

import math
import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from botocore.config import Config
from botocore.exceptions import ClientError

from relaunch.adapters.aws.client_config import CLIENT_CONFIG
from relaunch.adapters.aws.ecs.rate_limiter import RateLimiter
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption, PurchasePolicy
from relaunch.core.definitions.definition import GithubTrigger, JobDefinition, S3Trigger
from relaunch.core.jobs.job import Job, waited_slot
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.machines.decision import MachineDecision
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Machine
from relaunch.ports import CapacityProviderOffer
from relaunch_local.ecs import SimulatorSettings, Timing
from relaunch_local.in_memory.stores import InMemoryStores
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.calls import CallErrors, Calls
from relaunch_local.simulation.aws.lambda_functions import Lambdas, OnEnd
from relaunch_local.simulation.aws.machine_table import CalledMachines
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.aws.runtime import Invocation, KilledError, Runtime
from relaunch_local.simulation.aws.sqs import Poller
from relaunch_local.simulation.aws.table import CalledJobs, Indexes
from relaunch_local.simulation.aws.template import CLUSTER, FunctionSettings
from relaunch_local.simulation.load.contention import ContendedJobs, ContendedMachines, Contention
from relaunch_local.simulation.load.limits import LAMBDA_CONCURRENCY
from relaunch_local.simulation.load.machines import CREATE_FLEET_SECONDS, FastMachineIndexes, SoundEc2
from relaunch_local.simulation.load.options import LoadOptions
from relaunch_local.simulation.machine_scenario import MachineScenario
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.scenario import BUCKET, ZONES, PlannedEvent, Scenario, shape_of

T = TypeVar("T")

USD_PER_HOUR: Mapping[str, float] = {"g5.48xlarge": 16.288, "g4dn.12xlarge": 3.912, "g4dn.xlarge": 0.526}
"""The instance types a load may run on: with eight GPUs, four, one."""
_KINDS = {"push": "vision", "upload": "speech", "request": "text"}
"""The definition that each kind of event starts; of twenty events eleven are pushes, eight uploads, one a request."""
_TWENTY = ("request", *("push", "upload") * 8, "push", "push", "push")
EVENTS_AT_SECONDS = 60.0
DEFINITIONS = len(_KINDS)
_OK = "ok"


@dataclass(frozen=True)
class LoadScenario(Scenario):
    """Many events at the same time."""

    instance_type: str = "g5.48xlarge"

    @classmethod
    def of(cls, options: LoadOptions, work_seconds: float) -> "LoadScenario":
        """Plan one event per job."""
        jobs = options.events
        instance_type = options.instance_type
        # Reproducible, not a secret.
        dice = random.Random(f"{options.seed}/load")  # noqa: S311
        machines = math.ceil(jobs / tasks_per_machine(instance_type))
        definitions = tuple(_definition(name, jobs) for name in _KINDS.values())
        # None is kept for the machines that replace interrupted ones: none is interrupted.
        own = MachineLimits(max_machines=options.max_machines, handover_reserve=0.0)
        provider = CapacityProviderOffer("gpus", instance_type, PurchaseOption.ON_DEMAND)
        return cls(
            intensity=1.0,
            chaos_seconds=0.0,
            providers=() if options.is_own else (provider,),
            capacity={} if options.is_own else {"gpus": None},
            definitions=definitions,
            recipes={each.name: Recipe(work_seconds=work_seconds, checkpoint_seconds=None) for each in definitions},
            events=tuple(_event(number, f"{dice.getrandbits(160):040x}") for number in range(jobs)),
            limits=StackLimits(
                max_running_jobs=jobs,
                max_waiting_jobs=jobs,
                machines=own,
            ),
            timing=Timing(),
            provisioning_quota=options.provisioning_quota,
            on_demand_usd_per_hour=USD_PER_HOUR,
            group_size=jobs,
            group_least=machines if options.is_warm else 0,
            instance_type=instance_type,
            machines=MachineScenario((instance_type,), ZONES, own) if options.is_own else MachineScenario(),
        )

    def simulator_settings(self, seed: int) -> SimulatorSettings:
        """Return the settings of the simulator, with the load's instance type."""
        return replace(
            super().simulator_settings(seed),
            instance_types={self.instance_type: shape_of(self.instance_type)},
            price_of=lambda name, _zone, _purchase: USD_PER_HOUR[name],
        )


def tasks_per_machine(instance_type: str) -> int:
    """Return how many jobs of one GPU each fit on an instance."""
    return load_catalogue()[instance_type].gpu_count


def _definition(name: str, jobs: int) -> JobDefinition:
    return JobDefinition(
        name=name,
        task_definition=f"{name}-trainer",
        accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=1, memory_mib=8 * 1024)),
        triggers=(
            GithubTrigger(f"acme/{name}", "push", branches=("main",)),
            S3Trigger(BUCKET, prefix=f"{name}/", suffix=".manifest"),
        ),
        environment={"RECIPE": name},
        purchase=PurchasePolicy.ON_DEMAND,
        max_running_jobs=jobs,
        max_waiting_jobs=jobs,
    )


def _event(number: int, token: str) -> PlannedEvent:
    kind = _TWENTY[number % len(_TWENTY)]
    return PlannedEvent(EVENTS_AT_SECONDS, kind, _KINDS[kind], token)


@dataclass
class CountedCalls(Calls):
    """Calls, with their answers, which are throttled now and then."""

    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The answers of ECS and EC2, by action and error."""
    made: Counter[tuple[str, str]] = field(default_factory=Counter)
    """All calls of functions, by service and action."""

    def perform(
        self, service: str, action: str, effect: Callable[[], T], errors: CallErrors, config: Config = CLIENT_CONFIG
    ) -> T:
        """Perform the call, and count it."""
        if self.runtime.current is not None:
            self.made[service, action] += 1
        if action == "create_fleet":
            self.runtime.pause(CREATE_FLEET_SECONDS, "EC2 launches an instance")
        return super().perform(service, action, effect, errors, config)

    def send(
        self, service: str, action: str, effect: Callable[[], T], errors: CallErrors, fault: str, *, is_first: bool
    ) -> T:
        """Send the call once, and count the answer."""
        try:
            answer = super().send(service, action, effect, errors, fault, is_first=is_first)
        except ClientError as error:
            self.answers[action, error.response["Error"]["Code"]] += 1
            raise
        if service in ("ecs", "ec2"):
            self.answers[action, _OK] += 1
        return answer


@dataclass
class FastIndexes(Indexes):
    """Indexes that look only at jobs that may wait for a slot, for speed."""

    _may_wait: dict[str, None] = field(default_factory=dict)

    def note(self, job: Job) -> None:
        """Propagate a write to the indexes, with a delay."""
        super().note(job)
        if waited_slot(job) is not None:
            self._may_wait[job.job_id] = None

    def waiting(self, slot: str) -> list[Job]:
        """Return the jobs that the index `waiting` has under a slot."""
        found = []
        for job_id in list(self._may_wait):
            job = self._shown(job_id)
            if job is not None and waited_slot(job) == slot:
                found.append(job)
            if all(waited_slot(each) is None for _, each in self._entries[job_id]):
                del self._may_wait[job_id]
        return found


class TooManyRequestsError(Exception):
    """Lambda's 429: the account is at its concurrency limit."""


@dataclass
class LimitedLambdas(Lambdas):
    """Functions within the account's concurrency limit, each in a container; calls beyond it get a 429."""

    running: int = 0
    refused: int = 0
    containers: int = 0
    _free: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def call(self, name: str, body: Callable[[], Any], on_end: OnEnd, asked: str = "") -> None:
        """Invoke a function once, unless too many run."""
        if self.running >= LAMBDA_CONCURRENCY:
            self.refused += 1
            on_end(None, TooManyRequestsError(name))
        else:
            super().call(name, body, on_end, asked)

    def call_asynchronously(self, name: str, body: Callable[[], Any], request: Mapping[str, Any] | None = None) -> None:
        """Queue an asynchronous invocation; Lambda retries after a second while too many run."""
        if self.running >= LAMBDA_CONCURRENCY:
            self.refused += 1
            wait = self._runtime.chance.stream("asynchronous-queue").uniform(1.0, 2.0)
            self._runtime.clock.call_later(wait, lambda: self.call_asynchronously(name, body, request))
        else:
            super().call_asynchronously(name, body, request)

    def _invoke(
        self,
        settings: FunctionSettings,
        body: Callable[[], Any],
        on_end: OnEnd,
        invocation: Invocation | None = None,
    ) -> None:
        self.running += 1
        invocation = invocation or Invocation(next(self._numbers), settings.name)
        free = self._free[settings.name]
        if not free:
            self.containers += 1
        invocation.container = container = free.pop() if free else self.containers

        def ended(answer: Any, error: BaseException | None) -> None:
            self.running -= 1
            if not isinstance(error, KilledError):
                free.append(container)
            on_end(answer, error)

        super()._invoke(settings, body, ended, invocation)


class BusyPoller(Poller):
    """Pollers with the latency of a busy queue."""

    latency_seconds = (0.002, 0.05)


@dataclass(frozen=True, slots=True)
class PerContainer:
    """An object that each container of a function has its own instance of, created on first use."""

    _make: Callable[[], Any]
    _runtime: Runtime
    _made: dict[int, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the current container's object."""
        container = self._runtime.current.container if self._runtime.current else 0
        if container not in self._made:
            self._made[container] = self._make()
        return getattr(self._made[container], name)


@dataclass
class RetriedJobs(CalledJobs):
    """The jobs: a transaction that meets another one is tried again, as the adapter does."""

    _contention: Contention

    def save_job(self, decision: Decision) -> Job:
        """Save a job."""
        return self._contention.retry(lambda: super(RetriedJobs, self).save_job(decision))


@dataclass
class RetriedMachines(CalledMachines):
    """The machines: a transaction that meets another one is tried again, as the adapter does."""

    _contention: Contention

    def save_machine(self, decision: MachineDecision) -> Machine:
        """Save a machine."""
        return self._contention.retry(lambda: super(RetriedMachines, self).save_machine(decision))


class LoadAccount(SimulatedAccount):
    """The account of a load."""

    calls_type = CountedCalls
    indexes_type = FastIndexes
    ec2_type = SoundEc2
    machine_indexes_type = FastMachineIndexes
    lambdas_type = LimitedLambdas
    poller_type = BusyPoller

    def __init__(self, seed: int, scenario: LoadScenario) -> None:
        """Build the account, and wait until its minimum of instances has registered."""
        super().__init__(seed, Options(without_faults=True, scenario=scenario))
        # The invariants get each write; keeping them would take most of the memory.
        if isinstance(self.stores, InMemoryStores):
            self.stores.jobs.decisions = deque(maxlen=0)
        hosts = self.simulator.clusters.get(CLUSTER).container_instances
        self.clock.run_until(lambda: len(hosts) >= scenario.group_least)

    def _stores(self) -> dict[str, Any]:
        """Return the stores, whose transactions conflict."""
        self.contention = Contention(self.runtime)
        stores = super()._stores()
        on_effect = self.invariants.effects.done
        jobs = ContendedJobs(self.stores.jobs, self.contention)
        machines = self.stores.machines
        noted = self.machine_saved
        saved = (self.job_saved, on_effect, noted, True, self.selection_saved)
        stores["jobs"] = RetriedJobs(jobs, self.calls, self.indexes, *saved, self.contention)
        contended = ContendedMachines(machines, self.contention)
        stores["machines"] = RetriedMachines(contended, self.calls, self.machine_indexes, noted, self.contention)
        return stores

    @property
    def refused(self) -> Counter[str]:
        """Count refused calls by their error, and refused invocations."""
        found = Counter({f"{action}: {code}": count for (action, code), count in self._answers.items() if code != _OK})
        if isinstance(self.lambdas, LimitedLambdas) and self.lambdas.refused:
            found["functions: TooManyRequests"] = self.lambdas.refused
        return found

    @property
    def every_call(self) -> Counter[str]:
        """Count the calls of functions by service and action."""
        made = self.calls.made if isinstance(self.calls, CountedCalls) else Counter()
        return Counter({f"{service}:{action}": count for (service, action), count in made.items()})

    @property
    def machines_requested(self) -> int:
        """Count the machines of our own that were requested, whatever became of them."""
        return len(self.machine_indexes.all_shown())

    @property
    def calls_made(self) -> Counter[str]:
        """Count the calls of each action of ECS and EC2, whatever the answer."""
        return Counter(action for action, _ in self._answers.elements())

    @property
    def _answers(self) -> Counter[tuple[str, str]]:
        return self.calls.answers if isinstance(self.calls, CountedCalls) else Counter()

    def per_container(self, make: Callable[[], Any]) -> Any:
        """Return an object with one instance per container."""
        return PerContainer(make, self.runtime)

    def rate_limiter(self) -> RateLimiter:
        """Return a container's rate limiter for launches, which waits on the virtual clock."""
        clock = self.clock
        runtime = self.runtime
        return RateLimiter(
            lambda: clock.now().timestamp(), lambda seconds: runtime.pause(seconds, "waits for its turn")
        )
