"""Whatever is saved, refused and saved again, the counters are the sum over the machines: the fake and the adapter."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.conftest import Stores, create
from fakes.builders import make_job
from fakes.stored_machines import change, make_machine, totals_of
from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.machines.decision import MachineDecision, MachineTotals
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.ports import MachineLimitError, MachineTakenError, SlotsFullError, StaleWriteError

NAMES = ("m-1", "m-2", "m-3")


@dataclass(frozen=True)
class Change:
    """A machine's next state, as decided from its latest version, the one before, or without knowing it (`age`)."""

    name: str
    age: int
    state: MachineState
    usd_per_hour: float
    has_instance: bool


@dataclass(frozen=True)
class Step:
    """Changes that are saved together: with the job, from its latest version or the one before, or one without it."""

    changes: tuple[Change, ...]
    limits: MachineTotals
    is_with_job: bool
    job_age: int
    slots: int


CHANGES = st.builds(
    Change,
    st.sampled_from(NAMES),
    st.sampled_from((0, 0, 0, 1, 99)),
    st.sampled_from(MachineState),
    st.sampled_from((0.1, 0.4, 0.7)),
    st.booleans(),
)
STEPS = st.builds(
    Step,
    st.lists(CHANGES, min_size=1, max_size=3, unique_by=lambda each: each.name).map(tuple),
    st.builds(MachineTotals, st.sampled_from((0, 0, 1, 2, 3)), st.sampled_from((0, 0, 500_000, 1_000_000))),
    st.booleans(),
    st.sampled_from((0, 0, 0, 1)),
    st.sampled_from((0, 9, 9, 9)),
)


@dataclass
class Model:
    """What must be stored: every version of each machine and of the job, the latest one last."""

    jobs: list[Job]
    machines: dict[str, list[Machine]] = field(default_factory=lambda: defaultdict(list))
    instances: set[str] = field(default_factory=set)

    def decide(self, asked: Change, limits: MachineTotals) -> MachineDecision:
        """Return the decision from the version that is known to whoever decides."""
        known = self.machines[asked.name][-1 - asked.age :][:1] if asked.age < len(self.machines[asked.name]) else []
        before = known[0] if known else None
        after = replace(before or make_machine(asked.name), state=asked.state, usd_per_hour=asked.usd_per_hour)
        if asked.has_instance:
            after = replace(after, instance_id=f"i-{asked.name}")
        return change(after, before, machines=limits.machines, micro_usd_per_hour=limits.micro_usd_per_hour)

    def error_of(self, step: Step, decisions: list[MachineDecision]) -> type[Exception] | None:
        """Return the error of the first condition that does not hold."""
        if step.is_with_job and step.job_age and len(self.jobs) > 1:
            return StaleWriteError
        if step.is_with_job and not step.slots:
            return SlotsFullError
        if any(each.machine.version != self.version(each.machine.machine_id) for each in decisions):
            return MachineTakenError if step.is_with_job else StaleWriteError
        changed = {each.machine.machine_id: each.machine for each in decisions}
        after = totals_of({**self.latest(), **changed}.values())
        limits = step.limits
        is_full = (limits.machines and after.machines > limits.machines) or (
            limits.micro_usd_per_hour and after.micro_usd_per_hour > limits.micro_usd_per_hour
        )
        return MachineLimitError if is_full else None

    def version(self, name: str) -> int:
        return self.machines[name][-1].version if self.machines[name] else 0

    def latest(self) -> dict[str, Machine]:
        return {name: versions[-1] for name, versions in self.machines.items() if versions}

    def write(self, step: Step, decisions: list[MachineDecision]) -> None:
        if step.is_with_job:
            self.jobs.append(replace(self.jobs[-1], version=self.jobs[-1].version + 1))
        for machine in (each.machine for each in decisions):
            self.machines[machine.machine_id].append(replace(machine, version=machine.version + 1))
            if machine.instance_id:
                self.instances.add(machine.machine_id)


def save(stores: Stores, model: Model, step: Step, decisions: list[MachineDecision]) -> None:
    if not step.is_with_job:
        stores.machines.save_machine(decisions[0])
        return
    job = model.jobs[-1 - step.job_age] if len(model.jobs) > step.job_age else model.jobs[-1]
    stores.jobs.save_job(Decision(job, take_slot_limits=(step.slots * 9, 99), machines=tuple(decisions)))


def check(stores: Stores, model: Model) -> None:
    """Check that all is stored that must be, and nothing else."""
    latest = model.latest()
    assert {name: stores.machines.load_machine(name) for name in NAMES} == {name: latest.get(name) for name in NAMES}
    found = {name for name in NAMES if stores.machines.find_by_instance(f"i-{name}")}
    assert found == model.instances
    living = [name for name, machine in latest.items() if machine.state is not MachineState.GONE]
    assert sorted(stores.machines.load_living(9)) == sorted(living)
    assert stores.jobs.load_job(model.jobs[-1].job_id) == model.jobs[-1]


# Each step takes the emulated DynamoDB tens of milliseconds.
@settings(max_examples=settings.default.max_examples // 6)
@given(steps=st.lists(STEPS, max_size=12))
def test_the_counters_are_the_sum_over_the_machines_that_are_not_gone(
    make_stores: Callable[[], Stores], steps: list[Step]
) -> None:
    stores = make_stores()
    model = Model([create(stores.jobs, make_job())])
    for step in steps:
        changes = step.changes if step.is_with_job else step.changes[:1]
        decisions = [model.decide(each, step.limits) for each in changes]
        error = model.error_of(step, decisions)
        if error is None:
            save(stores, model, step, decisions)
            model.write(step, decisions)
        else:
            with pytest.raises(error):
                save(stores, model, step, decisions)
        assert stores.machines.load_totals() == totals_of(model.latest().values())
    check(stores, model)
