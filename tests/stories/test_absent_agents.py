"""Agents that stay away while their task runs: the host is lost in the end, and its job goes on elsewhere."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_definition, make_node
from fakes.machine_story import MachineStory
from fakes.story import MINUTE
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import NodeObservation
from relaunch.core.lifecycle.metrics import Metric
from relaunch.core.machines.absent_agents import AWAY_LIMIT, DOUBT_LIMIT
from relaunch.core.machines.events import AgentSeen, AgentState, InstanceState
from relaunch.core.machines.living import ABANDONED
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.look_at_agents import Agents
from relaunch.usecases.observe_machine import observe_machine
from relaunch.usecases.sweep_cluster import is_sweep_due, sweep_cluster

SAVING = make_definition(checkpoint_uri="s3://acme-checkpoints/resnet/")


def disconnect(story: MachineStory, *machines: Machine) -> None:
    story.tasks.disconnected |= {str(machine.node) for machine in machines}


def pass_time(story: MachineStory, lasts: timedelta) -> None:
    """Let time pass in which no event comes; what is due is looked at, and the cluster is swept every ten minutes."""
    until = story.now + lasts
    while story.now < until:
        story.reconcile(after=MINUTE)
        if is_sweep_due(story.now):
            sweep_cluster(story.deps)
        story.look()
        story.settle_all()


def train_two(story: MachineStory) -> tuple[Machine, Machine]:
    """Let two jobs train, each on a machine of its own."""
    job_ids = story.train(), story.train("b" * 40)
    return story.machine(job_ids[0]), story.machine(job_ids[1])


def add_others(story: MachineStory, number: int) -> None:
    """Let the cluster have machines of others, whose agents are connected."""
    for each in range(number):
        node = make_node(name=f"other-{each}", instance_id=f"i-{each:017x}0")
        story.tasks.instances[node.name] = node


def is_alive(story: MachineStory, machine: Machine) -> bool:
    return machine.instance_id in story.running_instances


def test_a_job_goes_on_elsewhere_once_the_host_is_terminated_whose_agent_stayed_away():
    story = MachineStory()
    job_id = story.train()
    first = story.machine(job_id)
    disconnect(story, first)

    pass_time(story, timedelta(minutes=29))
    assert is_alive(story, first)
    assert story.job(job_id).state is JobState.RUNNING
    pass_time(story, timedelta(minutes=13))

    assert story.load(first.machine_id).state is MachineState.GONE
    assert story.metrics.values(Metric.MACHINES_ABANDONED) == [1]
    # RunTask is called for no second task before the loss is confirmed.
    assert len(story.tasks.requests) == 1
    story.change_host(first.instance_id or "", "terminated")
    pass_time(story, timedelta(minutes=13))

    job = story.job(job_id)
    assert (job.state, job.totals.interruptions, job.totals.failures) == (JobState.WAITING, 1, 0)
    assert job.machine_id not in ("", first.machine_id)
    assert story.fleet.status_checks > 0


def test_failed_status_checks_make_it_five_minutes():
    story = MachineStory()
    machine = story.machine(story.train())
    disconnect(story, machine)
    story.fleet.impaired.add(machine.instance_id or "")

    pass_time(story, timedelta(minutes=17))

    assert not is_alive(story, machine)
    (abandoned,) = [each for each in story.load(machine.machine_id).timeline if each.event == ABANDONED]
    assert "EC2's status checks of it fail" in abandoned.detail


def test_an_agent_that_comes_back_costs_nothing_and_starts_the_clock_anew():
    story = MachineStory()
    machine = story.machine(story.train())
    disconnect(story, machine)
    pass_time(story, timedelta(minutes=30))
    story.tasks.disconnected.clear()
    pass_time(story, MINUTE)
    assert story.load(machine.machine_id).away_since is None

    disconnect(story, machine)
    pass_time(story, timedelta(minutes=29))

    assert is_alive(story, machine)


def test_an_event_of_ecs_tells_that_an_agent_is_back_between_two_looks():
    story = MachineStory()
    machine = story.machine(story.train())
    disconnect(story, machine)
    pass_time(story, timedelta(minutes=12))
    assert story.load(machine.machine_id).away_since is not None
    node = story.tasks.instances[str(machine.node)]

    observe_machine(NodeObservation(node, is_active=True, registered_at=story.now), story.deps)

    assert story.load(machine.machine_id).away_since is None


def test_a_training_whose_checkpoints_still_arrive_is_not_lost_until_they_do_not():
    story = MachineStory(SAVING)
    job_id = story.train()
    machine = story.machine(job_id)
    disconnect(story, machine)
    story.checkpoints.complete[job_id] = f"s3://acme-checkpoints/resnet/{job_id}/attempt-1/step-0000120/"
    for _ in range(6):
        story.checkpoints.saved_at = story.now
        pass_time(story, timedelta(minutes=20))
    assert is_alive(story, machine)
    assert story.job(job_id).state is JobState.RUNNING

    pass_time(story, timedelta(minutes=12))

    assert not is_alive(story, machine)


@pytest.mark.parametrize("error", [TransientError("SlowDown"), PermanentError("AccessDenied")])
def test_a_machine_is_kept_while_it_cannot_be_read_whether_its_training_saves(error: Exception):
    story = MachineStory(SAVING)
    machine = story.machine(story.train())
    disconnect(story, machine)
    story.checkpoints.refusal = error

    pass_time(story, timedelta(minutes=60))
    assert is_alive(story, machine)
    story.checkpoints.refusal = None
    pass_time(story, timedelta(minutes=2))

    assert not is_alive(story, machine)


def test_checkpoints_are_not_read_before_the_time_is_up():
    story = MachineStory(SAVING)
    machine = story.machine(story.train())
    disconnect(story, machine)
    story.checkpoints.refusal = AssertionError("read too early")

    pass_time(story, timedelta(minutes=29))

    assert is_alive(story, machine)


def test_when_most_agents_are_away_at_once_nothing_is_terminated_and_the_clock_starts_after_it():
    story = MachineStory()
    first, second = train_two(story)
    add_others(story, 2)
    disconnect(story, first, second)
    story.tasks.disconnected.add("other-0")
    instance = story.fleet.instances[first.instance_id or ""]
    other = story.tasks.instances["other-0"].instance_id
    story.fleet.foreign[other] = replace(instance, instance_id=other, machine_id="")
    pass_time(story, timedelta(hours=3))
    assert is_alive(story, first)
    assert is_alive(story, second)

    story.tasks.disconnected = {str(first.node)}
    pass_time(story, timedelta(minutes=29))
    assert is_alive(story, first)
    pass_time(story, timedelta(minutes=13))

    assert not is_alive(story, first)
    assert is_alive(story, second)


@pytest.mark.parametrize("others", [0, 1])
def test_two_agents_that_are_most_of_a_cluster_are_lost_after_hours_and_somebody_is_told(others: int):
    story = MachineStory()
    first, second = train_two(story)
    add_others(story, others)
    disconnect(story, first, second)

    pass_time(story, DOUBT_LIMIT - MINUTE)
    assert is_alive(story, first)
    assert is_alive(story, second)
    pass_time(story, timedelta(minutes=13))

    assert not is_alive(story, first)
    assert not is_alive(story, second)
    assert sum(story.metrics.values(Metric.MACHINES_ABANDONED)) == 2
    (abandoned,) = [each for each in story.load(first.machine_id).timeline if each.event == ABANDONED]
    assert "so are most agents of the cluster" in abandoned.detail


def test_two_agents_that_are_most_of_a_cluster_are_lost_earlier_where_the_status_checks_fail():
    story = MachineStory()
    first, second = train_two(story)
    disconnect(story, first, second)
    story.fleet.impaired.add(first.instance_id or "")

    pass_time(story, AWAY_LIMIT - MINUTE)
    assert is_alive(story, first)
    assert is_alive(story, second)
    pass_time(story, timedelta(minutes=13))

    assert not is_alive(story, first)


def test_an_outage_that_ends_within_hours_costs_a_small_cluster_nothing():
    story = MachineStory()
    first, second = train_two(story)
    disconnect(story, first, second)
    pass_time(story, DOUBT_LIMIT - timedelta(minutes=10))
    story.tasks.disconnected.clear()
    pass_time(story, timedelta(hours=1))

    assert is_alive(story, first)
    assert is_alive(story, second)
    assert story.load(first.machine_id).away_since is None


def test_registrations_of_instances_that_are_gone_are_no_outage():
    story = MachineStory()
    machine = story.machine(story.train())
    for number, state in enumerate((InstanceState.STOPPED, None)):
        node = make_node(name=f"ghost-{number}", instance_id=f"i-{number:017x}0")
        story.tasks.instances[node.name] = node
        story.tasks.disconnected.add(node.name)
        if state is not None:
            instance = story.fleet.instances[machine.instance_id or ""]
            story.fleet.foreign[str(node.instance_id)] = type(instance)(str(node.instance_id), state)
    disconnect(story, machine)

    pass_time(story, timedelta(minutes=42))

    assert not is_alive(story, machine)


def test_machines_of_others_are_never_terminated():
    story = MachineStory()
    story.train()
    add_others(story, 4)
    story.tasks.disconnected.add("other-0")
    before = story.running_instances

    pass_time(story, timedelta(hours=2))

    assert story.running_instances == before
    assert story.fleet.status_checks == 0


def test_a_job_that_trains_elsewhere_while_it_claims_the_machine_does_not_keep_it():
    story = MachineStory(SAVING)
    elsewhere, lost = story.train(), story.train("b" * 40)
    story.checkpoints.complete[elsewhere] = f"s3://acme-checkpoints/resnet/{elsewhere}/attempt-1/step-0000120/"
    story.checkpoints.saved_at = story.now
    claims = (*story.machine(elsewhere).claims, *story.machine(lost).claims)
    machine = replace(story.machine(lost), claims=claims, away_since=story.now - AWAY_LIMIT)
    disconnect(story, machine)

    assert Agents(story.deps).look(machine) == AgentSeen(AgentState.AWAY, saved_at=None)
    on_its_own = replace(story.machine(elsewhere), away_since=story.now - AWAY_LIMIT)
    story.tasks.disconnected = {str(on_its_own.node)}
    assert Agents(story.deps).look(on_its_own) == AgentSeen(AgentState.AWAY, saved_at=story.now)


def test_an_error_of_the_listing_says_nothing_of_an_agent(monkeypatch: pytest.MonkeyPatch):
    story = MachineStory()
    machine = story.machine(story.train())
    disconnect(story, machine)
    pass_time(story, timedelta(minutes=12))

    def fail() -> object:
        raise TransientError("ServerException")

    with monkeypatch.context() as patched:
        patched.setattr(story.tasks, "list_nodes", fail)
        story.look(after=timedelta(hours=1))
    assert is_alive(story, machine)
    # The machine's other affairs are looked after.
    assert (story.load(machine.machine_id).wake_at or story.now) > story.now
    pass_time(story, timedelta(minutes=2))

    assert not is_alive(story, machine)


def test_a_machine_that_cannot_be_loaded_does_not_keep_the_sweep_from_the_others(monkeypatch: pytest.MonkeyPatch):
    story = MachineStory()
    first, second = train_two(story)
    add_others(story, 2)
    disconnect(story, first, second)
    find = story.deps.machines.find_by_instance

    def find_by_instance(instance_id: str) -> str | None:
        if instance_id == first.instance_id:
            raise TransientError("ThrottlingException")
        return find(instance_id)

    monkeypatch.setattr(story.deps.machines, "find_by_instance", find_by_instance)
    sweep_cluster(story.deps)

    assert story.load(first.machine_id).away_since is None
    assert story.load(second.machine_id).away_since is not None


def test_a_machine_that_the_cluster_does_not_show_is_left_alone():
    story = MachineStory()
    machine = story.machine(story.train())
    disconnect(story, machine)
    pass_time(story, timedelta(minutes=12))
    del story.tasks.instances[str(machine.node)]

    pass_time(story, timedelta(minutes=60))

    assert is_alive(story, machine)
