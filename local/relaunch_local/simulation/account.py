"""One simulated account: the ECS simulator, SQS, EventBridge, Lambda, S3 and ECR, and the application in it."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from relaunch.adapters.aws.checkpoints import S3Checkpoints
from relaunch.adapters.aws.client_config import SINGLE_SEND_CONFIG
from relaunch.adapters.aws.ec2.fleet import Ec2Fleet
from relaunch.adapters.aws.ec2.hosts import Ec2Hosts
from relaunch.adapters.aws.ecr_images import EcrImages
from relaunch.adapters.aws.ecs.derived_revisions import EcsRegistry
from relaunch.adapters.aws.ecs.rate_limiter import RateLimiter
from relaunch.adapters.aws.ecs.revisions import EcsRevisions
from relaunch.adapters.aws.ecs.target import EcsTarget
from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.adapters.aws.sqs.dead_letters import SqsDeadLetters
from relaunch.adapters.aws.sqs.launch_queue import SqsLaunchQueue
from relaunch.adapters.aws.sqs.machine_queue import SqsMachineQueue
from relaunch.adapters.aws.sqs.source_queue import SourceQueue
from relaunch.adapters.input_patterns import Re2Patterns
from relaunch.adapters.market_thresholds import load_thresholds
from relaunch.core.jobs.effects import StopTask
from relaunch.core.messages.dead_letter import DeadLetterQueue
from relaunch.entrypoints.function import FunctionDependencies
from relaunch.ports import Dependencies, JobEvents
from relaunch_local.ecs import EPOCH, Clock, EcsSimulator, Event, InProcessClient, ProcessSpec
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.in_memory.stores import InMemoryStores
from relaunch_local.simulation.authorization import AuthorizedClient, AuthorizedStore, authorize_functions
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.clients import CallingClient
from relaunch_local.simulation.aws.delayed_ecs import DelayedEcs
from relaunch_local.simulation.aws.ecr_client import ModelEcr
from relaunch_local.simulation.aws.event_records import CalledEvents
from relaunch_local.simulation.aws.eventbridge import EventBus, upload_rules
from relaunch_local.simulation.aws.fleet import EC2_ERRORS, FaultyEc2
from relaunch_local.simulation.aws.lambda_functions import Lambdas
from relaunch_local.simulation.aws.machine_queue import NotedQueue
from relaunch_local.simulation.aws.machine_table import CalledMachines, MachineIndexes
from relaunch_local.simulation.aws.outages import SSM, Outages
from relaunch_local.simulation.aws.pages import in_pages, in_small_queries
from relaunch_local.simulation.aws.put_events import make_job_events
from relaunch_local.simulation.aws.runtime import FunctionClock, Runtime
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.aws.s3_client import ModelS3
from relaunch_local.simulation.aws.scheduler import ModelScheduler
from relaunch_local.simulation.aws.snapshots import Snapshots
from relaunch_local.simulation.aws.sns import topic_queue
from relaunch_local.simulation.aws.sqs import Poller, Queues
from relaunch_local.simulation.aws.sqs_client import ModelSqs, SourceSqs
from relaunch_local.simulation.aws.table import CalledCapacity, CalledJobs, CalledRates, CalledStore, Indexes
from relaunch_local.simulation.aws.template import CLUSTER, STACK, SourceSettings, read_stack
from relaunch_local.simulation.aws.trainings import Trainings
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.checks.absent_agents import AbsentAgentChecks
from relaunch_local.simulation.checks.agents import AgentChecks
from relaunch_local.simulation.checks.budgets import BudgetChecks
from relaunch_local.simulation.checks.choices import Choices
from relaunch_local.simulation.checks.costs import Costs
from relaunch_local.simulation.checks.deadlines import Deadlines
from relaunch_local.simulation.checks.devices import NeuronDevices
from relaunch_local.simulation.checks.early_stops import EarlyStops
from relaunch_local.simulation.checks.endings import Endings
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.failed_tasks import FailedTasks
from relaunch_local.simulation.checks.free_hour import FreeHour
from relaunch_local.simulation.checks.functions import FunctionChecks
from relaunch_local.simulation.checks.gpu_shares import GpuShares
from relaunch_local.simulation.checks.invariants import Invariants
from relaunch_local.simulation.checks.job_events import JobEventChecks
from relaunch_local.simulation.checks.machines import MachineInvariants
from relaunch_local.simulation.checks.metrics import MetricChecks
from relaunch_local.simulation.checks.on_demand import OnDemand
from relaunch_local.simulation.checks.provider_queues import ProviderQueues
from relaunch_local.simulation.checks.refusals import Refusals
from relaunch_local.simulation.checks.stalls import StallChecks
from relaunch_local.simulation.checks.trace import Trace
from relaunch_local.simulation.checks.trigger_starts import TriggerStarts
from relaunch_local.simulation.checks.useless_machines import UselessMachines
from relaunch_local.simulation.checks.wait_reasons import WaitReasons
from relaunch_local.simulation.cluster import make_cluster, make_targets
from relaunch_local.simulation.cluster_sign_in import make_sign_in
from relaunch_local.simulation.drawn_scenario import draw_scenario
from relaunch_local.simulation.machine_scenario import MACHINES_QUEUE
from relaunch_local.simulation.notices.parts import Notices
from relaunch_local.simulation.offerings import own_and_provided
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.saves import CheckedWrites
from relaunch_local.simulation.scenario import provision
from relaunch_local.simulation.true_speeds import TrueSpeeds

if TYPE_CHECKING:
    from relaunch_local.simulation.aws.emulated_table import EmulatedTable

# Days and months end while jobs run.
_LATE_IN_A_MONTH = EPOCH.replace(month=1, day=31, hour=22, minute=40)


class SimulatedAccount(CheckedWrites):
    """The account of one run, built from its seed; a subclass may replace parts."""

    calls_type: type[Calls] = Calls
    indexes_type: type[Indexes] = Indexes
    ec2_type: type[FaultyEc2] = FaultyEc2
    machine_indexes_type: type[MachineIndexes] = MachineIndexes
    lambdas_type: type[Lambdas] = Lambdas
    poller_type: type[Poller] = Poller
    on_stop_asked: Callable[[str], None] = staticmethod(lambda _arn: None)

    def __init__(self, seed: int, options: Options) -> None:
        """Build the account and deploy the application; nothing happens until the clock advances."""
        self.clock = Clock(_LATE_IN_A_MONTH if seed % 4 == 3 else EPOCH)
        self.started_at = self.clock.now()
        self.chance = Chance(seed, self.clock.now, options.allowed)
        self.chance.is_calm = options.without_faults
        self.trace = Trace(self.clock, options.trace)
        self.scenario = options.scenario or draw_scenario(self.chance, has_gangs=options.has_gangs)
        self.chance.intensity = self.scenario.intensity
        self.objects = ObjectStore()
        self.runtime = Runtime(self.clock, self.chance, self.trace.line, is_killed_at=options.is_killed_at)
        self.outages = Outages(self.clock, self.chance, self.scenario.outages + options.outages)
        self.calls = self.calls_type(self.runtime, self.chance, self.outages.fault_of)
        self._make_checks()
        self.trainings = Trainings(
            self.clock, self.chance, self.objects, self.scenario.recipes, self.invariants.container_started,
            self._killed, self.scenario.sidecars, check=self.invariants.check,
        )  # fmt: skip
        self.simulator = self._make_simulator(seed)
        self.trainings.speed_of = TrueSpeeds(self.scenario, self.simulator).of
        has_topics = self.scenario.other_triggers is not None
        self.stack = read_stack(takes_topics=has_topics, sends_notices=self.scenario.notices is not None)
        self.queues = Queues(self.stack.queues, self.clock, self.chance, self.trace.line, self.outages)
        self.bus = self._make_bus()
        self.ecr = ModelEcr()
        self._make_stores(options)
        self.invariants.effects.is_released = self.machines.claims.is_released
        self.deadlines = self._watch_deadlines()
        self.notices = Notices(self)
        self.deps = self._deps()
        checks = (self.invariants.unhandled, self.message_handled, self.outages, self.invariants.check)
        self.lambdas = self.lambdas_type(self.stack, self._function, self.queues, self.runtime, *checks)
        self._deploy()
        self._subscribe()

    def _make_stores(self, options: Options) -> None:
        self.indexes = self.indexes_type(self.clock, self.chance)
        self.machine_indexes = self.machine_indexes_type(self.clock, self.chance)
        self.emulated = self._emulated_table() if options.dynamodb else None
        self.stores = self.emulated.raw if self.emulated is not None else InMemoryStores()
        self.machines.watch(self.simulator, self.stores.machines)

    def _make_bus(self) -> EventBus:
        self.scheduler = ModelScheduler(self.clock, self.chance, self.queues, self.outages)
        self.starts = TriggerStarts(self.clock, self.scenario.other_triggers)
        rules = (*self.stack.rules, *upload_rules(self.scenario.every_definition))
        return EventBus(rules, self.queues, self.clock, self.chance, self.outages)

    def _make_simulator(self, seed: int) -> EcsSimulator:
        settings = self.scenario.machines.settings
        parameters = self.scenario.role_parameters
        authorize = self.authorization = authorize_functions(self.runtime, settings, parameters, self.call_denied)
        self.snapshots = Snapshots(self.calls, self._authorized)
        self.cluster = make_cluster(self.clock, self.chance, self.objects, self.scenario, self.invariants)
        return EcsSimulator(self.clock, self.trainings, self.scenario.simulator_settings(seed), authorize=authorize)

    def _make_checks(self) -> None:
        limits = self.scenario.limits
        self.facts = AccountFacts(self.clock, self._instance_of, self.outages.time_within, self.runtime.began_at)
        self.invariants = Invariants(self.clock, self.objects, limits.max_running_jobs, self.facts)
        check = self.invariants.check
        jobs = self.invariants.jobs
        known = (self.objects, self.facts, self.calls.failed_at)
        machines = self.machines = MachineInvariants(self.clock, check, limits.machines, jobs, *known)
        checked = (self.clock, check, self.facts, machines.hosts)
        self.agents = AgentChecks(*checked)
        self.free_hour = FreeHour(*checked, self.runtime.began_at)
        self.absent_agents = AbsentAgentChecks(*checked, self.objects, self._hosts)
        machines.on_termination = self.free_hour.termination_asked
        launched = (machines.hosts, machines.bills, machines.terminations, machines.misled, machines.machines)
        useless = self.useless = UselessMachines(self.clock, check, jobs, *launched)
        lacking = (useless.have_lacked, useless.is_a_pool_avoided, useless.pauses.until)
        self.invariants.wakes.has_used_up = useless.has_used_up
        self.refusals = Refusals(self.clock, self.runtime, check, jobs, self.facts.outage_time, *lacking)
        self.endings = Endings(self.clock, check, self.facts.outage_time)
        targets = {each.name: each.target.value for each in self.scenario.every_definition}
        self.job_events = JobEventChecks(self.clock, self.chance, check, self._hosts, targets)
        self.early_stops = EarlyStops(*checked, limits.machines)
        self.metrics = MetricChecks(self.runtime, check, self.endings)
        trained = (lambda: self.trainings, self.chance, self.facts)
        self.stalls = StallChecks(self.clock, self.objects, check, *trained, self.scenario.page_size)
        self.costs = Costs(
            self.clock,
            check,
            machines.hosts,
            machines.bills,
            machines.machines,
            self.scenario.machines.settings,
            self.scenario.spot_prices,
            self.scenario.on_demand_usd_per_hour,
            self.facts,
            machines.misled,
            self.calls.failed_at,
            lambda *days: self.stores.jobs.load_costs(*days),  # noqa: PLW0108 - the stores are made later
        )
        paid = (self.costs, jobs, machines.machines, machines.terminations)
        stores = (lambda: self.stores.budgets, self.facts.outage_time, self.invariants.tasks)
        self.budgets = BudgetChecks(self.chance.seed, self.clock, check, *paid, *stores)
        self.failed_tasks = FailedTasks(check, self.facts, machines.hosts, machines.terminations)

    def _hosts(self) -> Iterable[Instance]:
        return self.simulator.instances.by_id.values()

    def _watch_deadlines(self) -> Deadlines:
        self.on_demand = OnDemand(self.scenario, self.simulator, self.stores.machines, self.stores.capacity)
        sold = (self.scenario, self.simulator, self.stores.capacity, self.calls.failed_at)
        done = (self.invariants.effects.when, self.useless.is_held_back, self.useless.pauses.until)
        self.choices = Choices(self.clock, self.invariants.check, *sold, *done)
        self.refusals.find_open = self.choices.find_open
        known = (self.choices, self.objects, self.calls.failed_at, self.scenario.limits.max_running_jobs)
        self.wait_reasons = WaitReasons(self.clock, self.invariants.check, *known, self.machines, self.facts)
        self.provider_queues = ProviderQueues(
            self.clock,
            self.invariants.check,
            self.simulator,
            self.scenario,
            self.facts,
            self.invariants.jobs,
            self.invariants.tasks,
            self.stores.capacity,
        )
        watched = (self.clock, self.chance, self.invariants, self.objects, self.trainings, self.machines.machines)
        return Deadlines(*watched, self.on_demand, self.scenario.speeds, self.facts.outage_time)

    def _deploy(self) -> None:
        for source in (each for function in self.stack.functions.values() for each in function.sources):
            self._poll(source)
        provision(self.simulator, self.scenario)
        for definition in self.scenario.every_definition:
            self.stores.definitions.save_definition(definition)
        self.budgets.begin([each.name for each in self.scenario.every_definition])

    def _subscribe(self) -> None:
        self.trace.on_swept = self.functions.swept
        self.trace.on_alert = self.endings.alert
        for subscriber in (
            self.trace.event,
            self.facts.observe,
            self.agents.observe,
            self.absent_agents.observe,
            self.early_stops.observe,
            self.invariants.task_changed,
            NeuronDevices(self.invariants.check, self._hosts).observe,
            GpuShares(self.invariants.check, self._hosts, self.invariants.jobs).observe,
            self.useless.observe,
            self.delayed_ecs.observe,
            self.faulty_ec2.observe,
            self.functions.observe,
            self._publish,
        ):
            self.simulator.subscribe(subscriber)

    def _publish(self, event: Event) -> None:
        if not self.delayed_ecs.suppresses(event):
            self.bus.publish(event)

    def _poll(self, source: SourceSettings) -> None:
        handle = partial(self.lambdas.handle, source.function)
        self.poller_type(self.queues.queues[source.queue], source, self.clock, self.chance, self.outages, handle)

    def _function(self, name: str) -> FunctionDependencies:
        settings = self.stack.functions[name]
        queues = self._model_sqs()
        sqs: Any = CallingClient("sqs", queues, self.calls)
        # Deleting and setting apart take no time and never fail, so that seeds keep what they draw for other calls.
        # What is not used is not counted: it would cost calls, and change what a seed draws.
        unused = "" if self.scenario.machines.types else "MachinesDeadLetterQueue"
        counted = [DeadLetterQueue(queue, queue) for queue in settings.watched_queues if queue != unused]
        return FunctionDependencies(
            self.deps,
            SourceQueue(cast("Any", SourceSqs(sqs, queues))),
            DeadLetterSender(sqs, settings.dead_letter_queue, self.deps.log),
            SqsDeadLetters(sqs, counted),
            topic_queue(name, sqs, self.deps.log) if self.scenario.other_triggers is not None else None,
        )

    def _sqs(self) -> Any:
        return CallingClient("sqs", self._model_sqs(), self.calls)

    def _authorized(self, service: str, client: Any) -> Any:
        return AuthorizedClient(service, client, self.authorization)

    def _model_sqs(self) -> Any:
        return self._authorized("sqs", ModelSqs(self.queues, self.runtime))

    def _deps(self) -> Dependencies:
        clock = FunctionClock(self.runtime)
        client = in_pages(InProcessClient(self.simulator, validate=False), self.scenario.page_size)
        tasks = (self._stop_asked, self.invariants.task_made, self.scenario.machines.group_faults)
        delayed = self.delayed_ecs = DelayedEcs(client, self.clock, self.chance, *tasks)
        delayed.on_unplaced = self.useless.unplaced
        delayed.on_register_refused = self.refusals.register_refused
        delayed.on_refused = self.launch_refused
        delayed.on_taken = self.refusals.answered
        delayed.on_lost = lambda by: self.facts.unanswered_jobs[by.rpartition("/")[0]].append(self.clock.now())
        delayed.on_placed = self.agents.run_task_answered
        self.facts.hidden_span = delayed.denied_span
        self.facts.forgotten = delayed.forgotten
        known = (self.objects, self.stores.capacity, self.scenario.every_definition, self.facts, self.invariants)
        self.functions = FunctionChecks(self.runtime, self.simulator, delayed, *known, self.metrics, self.early_stops)
        ecs: Any = CallingClient("ecs", delayed, self.calls, on_answer=self.functions.ecs_answered)
        in_process = in_pages(InProcessClient(self.simulator, "ec2", validate=False), self.scenario.page_size)
        self.faulty_ec2 = self.ec2_type(in_process, self.simulator, self.clock, self.chance, self.machines)
        self.faulty_ec2.image_fault = partial(self.outages.fault_of, SSM)
        self.faulty_ec2.group_faults = self.scenario.machines.group_faults
        ec2: Any = CallingClient("ec2", self.faulty_ec2, self.calls, EC2_ERRORS, on_answer=self.functions.ec2_answered)
        answered = self.functions.fleet_answered
        fleet: Any = CallingClient("ec2", self.faulty_ec2, self.calls, EC2_ERRORS, on_answer=answered)
        single_send: Any = CallingClient("ec2", self.faulty_ec2, self.calls, EC2_ERRORS, SINGLE_SEND_CONFIG, answered)
        objects = self._authorized("s3", in_pages(ModelS3(self.objects), self.scenario.page_size))
        s3: Any = CallingClient("s3", objects, self.calls, on_answer=self.functions.s3_answered)
        ecr: Any = CallingClient("ecr", self._authorized("ecr", self.ecr), self.calls)
        clients = make_sign_in(self._authorized, self.calls)
        target = self.per_container(lambda: EcsTarget(ecs, CLUSTER, rate_limiter=self.rate_limiter()))
        ports: dict[str, Any] = {
            "targets": make_targets(target, self.cluster, self.calls, clients, self.scenario, self.invariants),
            "revisions": self.per_container(lambda: EcsRevisions(ecs, clock, has_host_access=self.scenario.has_gangs)),
            "offerings": own_and_provided(self.scenario, ec2, clock, self.trace, self.snapshots.store),
            "fleet": Ec2Fleet(fleet, single_send, STACK),
            "hosts": Ec2Hosts(ec2),
            "machine_queue": NotedQueue(SqsMachineQueue(self._sqs(), MACHINES_QUEUE), self.invariants.effects.done),
            "machine_settings": self.scenario.machines.settings,
            "images": EcrImages(ecr),
            "patterns": Re2Patterns(),
            "checkpoints": S3Checkpoints(s3),
            "load_thresholds": load_thresholds,
            "receivers": self.notices.source,
            "launches": SqsLaunchQueue(self._sqs(), "AttemptsQueue"),
            "job_events": self.per_container(self._job_events),
            "clock": clock,
            "log": self.trace,
            "metrics": self.metrics,
            "limits": self.scenario.limits,
            "registry": self.per_container(lambda: EcsRegistry(ecs, clock)),
        }
        return Dependencies(**ports, **self._stores())

    def _job_events(self) -> JobEvents:
        events = (self.calls, self.chance, FunctionClock(self.runtime), self._authorized, self.event_taken)
        return make_job_events(*events, may_fail=self.scenario.has_event_faults)

    def _stores(self) -> dict[str, Any]:
        if self.emulated is not None:
            return self.emulated.stores.by_port()
        stores: dict[str, Any] = {name: CalledStore(store, self.calls) for name, store in vars(self.stores).items()}
        on_effect = self.invariants.effects.done
        saved = (self.job_saved, on_effect, self.machine_saved, self.scenario.has_event_faults, self.selection_saved)
        stores["jobs"] = CalledJobs(self.stores.jobs, self.calls, self.indexes, *saved)
        stores["machines"] = CalledMachines(self.stores.machines, self.calls, self.machine_indexes, self.machine_saved)
        stores["capacity"] = CalledCapacity(self.stores.capacity, self.calls, on_effect)
        stores |= {name: CalledRates(getattr(self.stores, name), self.calls) for name in ("rates", "budgets")}
        stores["events"] = CalledEvents(self.stores.events, self.calls, self.event_recorded)
        return {port: AuthorizedStore(port, store, self.authorization) for port, store in stores.items()}

    def per_container(self, make: Callable[[], Any]) -> Any:
        """Return an object that each container of a function has; here all containers share one."""
        return make()

    def rate_limiter(self) -> RateLimiter | None:
        """Return a container's rate limiter for launches, None here: a seed has few launches."""
        return None

    def _killed(self, spec: ProcessSpec, after: timedelta) -> None:
        """Check how long after SIGTERM a container was killed, unless it ends with its instance just now."""
        host = self.simulator.instances.by_id[spec.instance_id]
        self.clock.call_later(0.0, lambda: self.invariants.container_killed(spec, after) if host.is_alive else None)

    def _instance_of(self, arn: str) -> str:
        return next((host.instance_id for host in self.simulator.instances.by_id.values() if host.arn == arn), "")

    def _stop_asked(self, task_arn: str) -> None:
        self.facts.stop_asked(task_arn)
        self.early_stops.stop_asked(task_arn)
        self.on_stop_asked(task_arn)
        self.invariants.effects.done(StopTask, task_arn)
        if self.chance.strikes("stop-races-with-exit", 0.15, note=task_arn[-6:]):
            self.trainings.exit_now(task_arn)

    def _emulated_table(self) -> "EmulatedTable":
        from relaunch_local.simulation.aws.emulated_table import EmulatedTable  # noqa: PLC0415 - moto takes a second to import

        on_effect = self.invariants.effects.done
        authorize = partial(in_small_queries, self.scenario.page_size, partial(self._authorized, "dynamodb"))
        return EmulatedTable(self.calls, self.indexes, authorize, self.job_saved, on_effect, self.machine_saved)

    def close(self) -> None:
        """Release what outlives a run."""
        if self.emulated is not None:
            self.emulated.close()
