"""Faults of instances, capacity, prices and quotas."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal

from relaunch_local.ecs import Event, Purchase, SpotPrice
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.faults.injector import FaultInjector

_START_ERRORS = (
    "CannotStartContainerError: Error response from daemon: nvidia-container-cli: initialization error: nvml error: "
    "driver not loaded: unknown",
    "CannotPullContainerError: failed to register layer: write /var/lib/docker/tmp: no space left on device",
    "DockerTimeoutError: Could not transition to created; timed out after waiting 4m0s",
)
# ECS keeps a client token for an hour after its task has stopped; such a task stops minutes after it was created.
_TOKEN_LIFE = timedelta(minutes=70)


class CapacityFaults(FaultInjector):
    """Injects a fault every few minutes until the faults stop."""

    stream = "market"
    pause_seconds = (60.0, 900.0)

    def __init__(self, account: SimulatedAccount, cancel: Callable[[], None]) -> None:
        """Schedule the first fault; `cancel` also cancels a job while a function stalls."""
        super().__init__(account, cancel)
        self._gone: list[str] = []
        account.calls.on_stall = self._act_during_stall
        account.delayed_ecs.on_unanswered = self._lose_unanswered
        account.simulator.subscribe(self._interrupt_as_task_lands)

    def _weighted_faults(self) -> Mapping[str, tuple[int, Callable[[], str]]]:
        return {
            "machine-interrupted": (6, self._interrupt),
            "machine-interrupted-at-short-notice": (2, self._interrupt_soon),
            "machine-lost-without-warning": (4, self._lose),
            "rebalance-recommended": (1, self._recommend),
            "warning-of-a-machine-long-gone": (1, self._warn_late),
            "warning-twice": (1, self._warn_twice),
            "warning-without-interruption": (1, self._warn_without_interruption),
            "agent-disconnected": (2, self._disconnect),
            "machine-starts-nothing": (2, self._break),
            "capacity-changed": (2, self._change_capacity),
            "price-changed": (1, self._change_price),
            "requests-of-others": (2, self._exhaust_rate_limit),
            "quota-reached": (1, self._fill_quota),
            "run-task-unanswered": (2, self._lose_answers),
        }

    def end(self) -> None:
        """End every fault."""
        simulator = self._simulator
        simulator.instances.capacity.clear()
        simulator.scheduler.provisioning_quota = 500
        self._restore_rate_limit()
        if self._account.delayed_ecs.answers_lost_until is not None:
            self._account.delayed_ecs.answers_lost_until = self._account.clock.now()
        self._account.bus.held_until = None
        self._restore_prices()
        for host in list(simulator.instances.by_id.values()):
            host.start_error = ""
            simulator.instances.set_agent(host, connected=True)

    def _act_during_stall(self, side: Literal["before", "after"]) -> None:
        """While a function stalls, cancel a job, or lose the instance of the task it created."""
        dice = self._account.chance.stream("stalls/market")
        if side == "before":
            if dice.random() < 0.5:
                self._account.clock.call_later(dice.uniform(0.0, 20.0), self._cancel)
        elif dice.random() < 0.6:
            self._account.clock.call_later(dice.uniform(3.0, 9.0), self._lose_newest)

    def _lose_newest(self) -> None:
        every = self._simulator.instances.by_id.values()
        hosts = [host for host in every if host.is_alive and host.tasks and self._may_take(host)]
        if hosts and self._account.chance.strikes("machine-lost-without-warning", 2.0, site="stall"):
            newest = max(hosts, key=lambda host: max(task.created_at for task in host.tasks.values()))
            self._simulator.instances.terminate(newest)

    def _lose_unanswered(self, task_arn: str) -> None:
        """Lose a task whose RunTask answer was lost, so that its client token expires before RunTask answers again."""
        until = self._account.delayed_ecs.answers_lost_until
        dice = self._account.chance.stream("outages/machines")
        if until is not None and until - self._account.clock.now() > _TOKEN_LIFE and dice.random() < 0.5:
            self._account.clock.call_later(dice.uniform(60.0, 400.0), lambda: self._lose_machine_of(task_arn))

    def _lose_machine_of(self, task_arn: str) -> None:
        for host in list(self._simulator.instances.by_id.values()):
            is_its = (
                host.is_alive and self._may_take(host) and any(task.arn == task_arn for task in host.tasks.values())
            )
            if is_its and self._account.chance.strikes("machine-lost-without-warning", 2.0, site="unheard"):
                self._simulator.instances.terminate(host)

    def _interrupt_as_task_lands(self, event: Event) -> None:
        """Interrupt an instance at the moment when it gets a task that ECS does not list yet."""
        detail = event["detail"]
        if detail.get("lastStatus") != "PENDING" or not self._account.delayed_ecs.is_hidden(detail["taskArn"]):
            return
        arn = detail["containerInstanceArn"]
        if any(host.arn == arn and not self._may_take(host) for host in self._simulator.instances.by_id.values()):
            return
        if self._account.chance.strikes("machine-interrupted-as-a-task-lands", 2.0, note=detail["taskArn"][-6:]):
            for host in self._simulator.instances.by_id.values():
                if host.arn == detail["containerInstanceArn"]:
                    self._simulator.instances.interrupt(host)

    def _machine(self) -> Instance | None:
        alive = [host for host in self._simulator.instances.by_id.values() if host.is_alive and host.is_registered]
        alive = [host for host in alive if self._may_take(host)]
        busy = [host for host in alive if host.tasks]
        return self._random.choice(busy or alive) if alive else None

    def _interrupt(self) -> str:
        return self._take(None)

    def _interrupt_soon(self) -> str:
        return self._take(self._random.uniform(1.0, 40.0))

    def _take(self, lead_seconds: float | None) -> str:
        host = self._machine()
        if host is None:
            return ""
        self._gone.append(host.instance_id)
        rebalance_first = self._random.random() < 0.2
        if self._account.chance.stream("interruptions/cancel").random() < 0.1:
            self._account.clock.call_later(self._random.uniform(1.0, 40.0), self._cancel)
        dice = self._account.chance.stream("interruptions/rebalance")
        if rebalance_first and dice.random() < 0.7:
            # Minutes ahead, the other times at the same moment: EC2 promises neither.
            self._simulator.instances.recommend_rebalance(host)
            self._account.clock.call_later(
                dice.uniform(20.0, 600.0), lambda: self._announce(host, lead_seconds) if host.is_alive else None
            )
        else:
            self._announce(host, lead_seconds, rebalance_first=rebalance_first)
        return host.instance_id

    def _announce(self, host: Instance, lead_seconds: float | None, *, rebalance_first: bool = False) -> None:
        """Announce the interruption of an instance, in its metadata first."""

        def interrupt() -> None:
            self._simulator.instances.interrupt(host, lead_seconds, rebalance_first=rebalance_first)

        # The Spot request changes with the metadata.
        host.warned_at = host.warned_at or self._account.clock.now()
        leaving = [self._account.trainings.warn(task.arn) for task in list(host.tasks.values())]
        if any(leaving):
            # The metadata says it some seconds before the event; `core.lifecycle.stop_reason` counts on ten at most.
            self._account.clock.call_later(self._account.chance.stream("metadata").uniform(0.0, 8.0), interrupt)
        else:
            interrupt()

    def _lose(self) -> str:
        host = self._machine()
        if host is None:
            return ""
        self._gone.append(host.instance_id)
        self._simulator.instances.terminate(host)
        return host.instance_id

    def _recommend(self) -> str:
        host = self._machine()
        if host is not None:
            self._simulator.instances.recommend_rebalance(host)
        return host.instance_id if host else ""

    def _warn_late(self) -> str:
        instance_id = self._random.choice([*self._gone, "i-0123456789abcdef0"])
        self._warn(instance_id)
        return instance_id

    def _warn_twice(self) -> str:
        host = self._machine()
        if host is None:
            return ""
        self._warn(host.instance_id)
        return self._take(None)

    def _warn_without_interruption(self) -> str:
        host = self._machine()
        if host is not None:
            self._warn(host.instance_id)
        return host.instance_id if host else ""

    def _warn(self, instance_id: str) -> None:
        detail = {"instance-id": instance_id, "instance-action": "terminate"}
        self._simulator.region.events.publish(
            "aws.ec2", "EC2 Spot Instance Interruption Warning", instance_id, lambda: detail
        )

    def _disconnect(self) -> str:
        host = self._machine()
        if host is None:
            return ""
        self._simulator.instances.set_agent(host, connected=False)
        back = self._random.uniform(10.0, 900.0)
        self._account.clock.call_later(back, lambda: self._simulator.instances.set_agent(host, connected=True))
        return f"{host.instance_id} for {back:.0f} s"

    def _break(self) -> str:
        host = self._machine()
        if host is None:
            return ""
        host.start_error = self._random.choice(_START_ERRORS)
        return host.instance_id

    def _change_capacity(self) -> str:
        providers = self._account.scenario.providers
        if not providers:
            return ""
        provider = self._random.choice(providers)
        limit = self._random.choice((None, 0, 0, 1))
        self._simulator.set_capacity(provider.instance_type, Purchase(provider.purchase.value), limit)
        return f"{provider.name}: {limit}"

    def _change_price(self) -> str:
        prices: list[Any] = self._account.scenario.spot_prices
        old = self._random.choice(prices)
        price = round(old.price_usd_per_hour * self._random.choice((0.7, 1.5, 2.5)), 4)
        # No spot price is above the on-demand price.
        price = min(price, self._account.scenario.on_demand_usd_per_hour.get(old.instance_type, price))
        prices.append(SpotPrice(old.instance_type, old.zone, price, self._account.clock.now()))
        return f"{old.instance_type} {old.zone}: {price}"

    def _restore_prices(self) -> None:
        prices: list[Any] = self._account.scenario.spot_prices
        now = self._account.clock.now()
        changed = {(each.instance_type, each.zone) for each in prices if each.since}
        first = [each for each in prices if each.since is None and (each.instance_type, each.zone) in changed]
        prices.extend(replace(each, since=now) for each in first)

    def _exhaust_rate_limit(self) -> str:
        # Another caller in the account uses up the rate limit of ECS.
        seconds = self._random.uniform(5.0, 90.0)
        buckets = self._simulator.limits._buckets  # noqa: SLF001 - nobody else needs to change them
        for bucket in (buckets["task-modify"], buckets["task-read"]):
            bucket.tokens = 0.0
            bucket.burst = 1.0
            bucket.rate = 0.3
        self._account.clock.call_later(seconds, self._restore_rate_limit)
        return f"{seconds:.0f} s"

    def _restore_rate_limit(self) -> None:
        buckets = self._simulator.limits._buckets  # noqa: SLF001
        for name, rate in (("task-modify", 40.0), ("task-read", 20.0)):
            buckets[name].burst = 100.0
            buckets[name].rate = rate

    def _lose_answers(self) -> str:
        # Longer than a placement try may be sent again; ECS's events are held back for as long.
        ends_at = self._account.clock.now() + timedelta(minutes=self._random.choice((3, 20, 75, 110, 150)))
        self._account.delayed_ecs.answers_lost_until = ends_at
        # Some outages let nothing through, some let everything through but the answers.
        self._account.delayed_ecs.lost_share = self._account.chance.stream("outages").choice((0.5, 1.0, 0.0))
        if self._random.random() < 0.7:
            self._account.bus.held_until = ends_at
        self._account.clock.call_later(self._random.uniform(1.0, 300.0), self._cancel)
        dice = self._account.chance.stream("outages")
        if dice.random() < 0.4:
            seconds = dice.uniform(60.0, 400.0)
            self._account.clock.call_later(dice.uniform(10.0, 900.0), lambda: self._account.delayed_ecs.forbid(seconds))
        return f"until {ends_at:%H:%M}"

    def _fill_quota(self) -> str:
        seconds = self._random.uniform(60.0, 1_500.0)
        scheduler = self._simulator.scheduler
        before = self._simulator.scheduler.provisioning_quota
        scheduler.provisioning_quota = 0
        self._account.clock.call_later(seconds, lambda: setattr(scheduler, "provisioning_quota", max(before, 2)))
        return f"{seconds:.0f} s"
