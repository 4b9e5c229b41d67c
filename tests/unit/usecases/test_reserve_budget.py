"""Jobs are launched as long as their budgets have room, wait then, and save and wait when one is used up."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_definition, make_offering
from fakes.machine_story import MachineStory
from fakes.sources import FakeOfferings
from fakes.story import Story, push
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.jobs.attempt import IntentKind
from relaunch.core.jobs.budgets import Budget, month_of
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, Reserved, WaitReason
from relaunch.core.lifecycle.charging import with_machines
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.machines.decision import MachineDecision
from relaunch.core.machines.machine import Holding
from relaunch.ports import BudgetExceededError, TransientError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.reserve_budget import renew_leases

HOUR = timedelta(hours=1)
BY_PROVIDER = make_offering("g5.xlarge", PurchaseOption.SPOT, price_usd_per_hour=0.40)


def by_provider(**budgets: float) -> Story:
    """Return a story in which a g5.xlarge costs $0.40 by a capacity provider, with these budgets of a month."""
    return with_budgets(Story(make_definition(checkpoint_uri=None), offerings=FakeOfferings(BY_PROVIDER)), **budgets)


def with_budgets(story: Story, **budgets: float) -> Story:
    for scope, usd in budgets.items():
        story.deps.budgets.set_budget(Budget(scope), usd, None, {})
    return story


def reserved(story: Story) -> dict[str, float]:
    month = month_of(story.now)
    return {each.scope: round(each.reserved_in.get(month, 0.0), 4) for each in story.deps.budgets.load_budgets()}


def waits_for(story: Story, job_id: str) -> WaitReason | None:
    waiting = story.job(job_id).waiting
    return waiting.reason if waiting is not None else None


def look(story: Story, *job_ids: str) -> int:
    return renew_leases([story.job(each) for each in job_ids], story.deps)


def test_a_launch_reserves_an_hour_of_each_budget_of_its_job_and_of_no_other() -> None:
    story = with_budgets(by_provider(stack=10.0), **{"definition/resnet": 5.0, "definition/other": 5.0})

    story.launch()

    assert reserved(story) == {"stack": 0.4, "definition/resnet": 0.4, "definition/other": 0.0}


def test_what_a_budget_has_no_room_for_waits_and_is_launched_once_another_job_gives_back() -> None:
    story = by_provider(stack=0.5)
    first = story.launch()
    second = story.submit_and_deliver(push("5e08"))

    assert waits_for(story, second) is WaitReason.BUDGET
    assert "relaunch budgets set stack" in story.job(second).reason
    assert reserved(story) == {"stack": 0.4}
    assert [each.percent for each in story.job_events.budgets] == [100]
    story.clock.advance(360)
    story.end(first)
    story.launches.request_launch(second)
    story.settle()
    assert story.job(second).state is JobState.LAUNCHING
    assert reserved(story)["stack"] == pytest.approx(0.44)


@pytest.mark.parametrize("usd", [0.10, 10.0])
def test_a_machine_of_our_own_is_bought_only_if_the_budget_has_room(usd: float) -> None:
    story = with_budgets(MachineStory(), stack=usd)

    job_id = story.start()

    is_bought = usd > 1
    assert bool(story.fleet.requests) is is_bought
    assert (waits_for(story, job_id) is WaitReason.BUDGET) is not is_bought
    assert (reserved(story)["stack"] > 0) is is_bought


@pytest.mark.parametrize("has_answer", [True, False], ids=["EC2 answered", "it did not yet"])
def test_what_the_machine_of_a_cancelled_job_has_cost_stays_reserved(*, has_answer: bool) -> None:
    story = with_budgets(MachineStory(), stack=10.0)
    job_id = story.start() if has_answer else story.submit_and_deliver(push())
    story.clock.advance(15 * 60)

    cancel_job(job_id, "cancelled", story.deps)

    assert story.job(job_id).state is JobState.CANCELLED
    # A quarter of an hour at $0.40, and what its volume and its address cost.
    assert (0.1 < reserved(story)["stack"] < 0.12) is has_answer
    assert (reserved(story)["stack"] == 0) is not has_answer


def test_while_it_runs_a_job_renews_what_it_reserved() -> None:
    story = by_provider(stack=10.0)
    job_id = story.launch()

    assert look(story, job_id) == 0
    story.clock.advance(40 * 60)
    assert look(story, job_id) == 1
    assert reserved(story)["stack"] == pytest.approx(0.4 * 100 / 60, abs=0.001)
    assert look(story, job_id) == 0


def test_a_share_that_grew_when_others_left_the_machine_is_renewed_by_what_it_costs_then() -> None:
    story = with_budgets(MachineStory(), stack=10.0)
    job_id = story.train()
    a_tenth = Holding(story.now, {job_id: 0.1, "other": 0.9})
    shared = replace(story.machine(job_id), holdings=(a_tenth,), paid_since=story.now)
    per_hour = shared.usd_per_hour + shared.beside_usd_per_hour
    story.deps.machines.save_machine(MachineDecision(shared))
    job = with_machines(story.job(job_id), (shared,), story.now)
    story.jobs.save_job(Decision(replace(job, reserved=Reserved({"stack": per_hour / 10}, month_of(story.now)))))
    story.clock.advance(30 * 60)
    assert look(story, job_id) == 0, "half an hour is left"

    alone = replace(story.machine(job_id), holdings=(a_tenth, Holding(story.now, {job_id: 1.0})))
    story.deps.machines.save_machine(MachineDecision(alone))

    assert look(story, job_id) == 1, "three minutes are left"
    assert story.job(job_id).reserved.usd == {"stack": pytest.approx(per_hour * (0.1 / 2 + 1), abs=1e-4)}


def test_a_budget_that_is_used_up_lets_the_task_save_and_the_job_wait() -> None:
    story = by_provider(stack=0.5)
    job_id = story.launch()
    story.clock.advance(50 * 60)

    look(story, job_id)

    intent = story.attempt(job_id).intent
    assert intent is not None
    assert intent.kind is IntentKind.BUDGET
    assert [each for each, _ in story.tasks.stops] == [story.arn(job_id)]
    story.end(job_id, 1, stop_code="UserInitiated", stopped_reason="no room")
    story.settle()
    assert waits_for(story, job_id) is WaitReason.BUDGET
    job = story.job(job_id)
    assert (job.totals.failures, job.totals.interruptions) == (0, 0)
    assert reserved(story)["stack"] == pytest.approx(job.totals.cost_usd, abs=1e-4)
    # Raised, it goes on.
    story.deps.budgets.set_budget(story.deps.budgets.load_budgets()[0], 5.0, None, {})
    story.launches.request_launch(job_id)
    story.settle()
    assert story.job(job_id).state is JobState.LAUNCHING


def test_a_budget_that_is_set_while_a_job_runs_counts_it_from_its_next_look_on() -> None:
    story = by_provider()
    job_id = story.launch()
    story.clock.advance(600)

    story.deps.budgets.set_budget(Budget("definition/resnet"), 10.0, None, {})

    assert look(story, job_id) == 1
    assert reserved(story) == {"definition/resnet": pytest.approx(0.4 + 0.4 / 6, abs=0.001)}


def test_others_that_reserve_the_rest_at_the_same_time_stop_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    story = by_provider(stack=10.0)
    job_id = story.launch()
    story.clock.advance(55 * 60)
    save = story.jobs.save_job

    def refuse(decision: object) -> Job:
        monkeypatch.setattr(story.jobs, "save_job", save)
        raise BudgetExceededError("stack")

    monkeypatch.setattr(story.jobs, "save_job", refuse)
    assert look(story, job_id) == 1
    assert story.job(job_id).state is JobState.RUNNING
    assert look(story, job_id) == 1
    assert reserved(story)["stack"] > 0.7


def test_a_job_that_cannot_be_read_keeps_no_other_from_renewing(monkeypatch: pytest.MonkeyPatch) -> None:
    story = by_provider(stack=10.0)
    one = story.launch()
    other = story.launch(push("5e08"))
    story.clock.advance(55 * 60)
    jobs = [story.job(each) for each in (one, other)]
    load = story.jobs.load_job

    def read(job_id: str) -> Job | None:
        if job_id == one:
            raise TransientError("throttled")
        return load(job_id)

    monkeypatch.setattr(story.jobs, "load_job", read)

    assert renew_leases(jobs, story.deps) == 2
    assert reserved(story)["stack"] == pytest.approx(0.8 + 0.4 * 55 / 60, abs=0.01)
    assert "postponed" in story.log.decisions


def test_a_job_whose_machine_alone_is_looked_at_renews_too() -> None:
    # While RunTask is not answered the next repetition is due before a look at the job is.
    story = by_provider(stack=10.0)
    job_id = story.launch()
    story.clock.advance(55 * 60)

    assert renew_leases([], story.deps, (job_id, "resnet-unknown")) == 1
    assert renew_leases([story.job(job_id)], story.deps, (job_id,)) == 0
    assert reserved(story)["stack"] == pytest.approx(0.4 + 0.4 * 55 / 60, abs=0.01)


def test_what_is_reached_is_reported_once_and_again_if_it_could_not_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    story = by_provider(stack=0.5)
    story.launch()
    send = story.job_events.send_budget
    monkeypatch.setattr(story.job_events, "send_budget", lambda _report: "throttled")
    story.deps.budgets.set_budget(Budget("definition/resnet"), 0.4, None, {"2026-03": 0.4})
    look(story)
    assert story.log.decisions.count("budget not reported") == 1, "the others would not be taken either"
    story.deps.budgets.set_budget(Budget("definition/resnet", 0.4), None, None, {})

    monkeypatch.setattr(story.job_events, "send_budget", send)
    for _ in range(3):
        look(story)

    (report,) = story.job_events.budgets
    assert (report.scope, report.percent, report.reserved_usd, report.limit_usd) == ("stack", 80, 0.4, 0.5)
    for usd in (0.48, 0.49):
        story.deps.budgets.set_budget(story.deps.budgets.load_budgets()[-1], usd, None, {})
        look(story)
    assert [each.limit_usd for each in story.job_events.budgets] == [0.5, 0.49], "again once the limit is raised"


def test_a_task_on_demand_stays_where_it_is_if_the_budget_has_no_room_for_the_machine_on_spot() -> None:
    story = MachineStory(make_definition(purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND))
    job_id = story.start()
    story.register(story.machine(job_id))
    story.settle_all()
    story.run(job_id)
    with_budgets(story, stack=0.0)
    on_machine = story.attempt(job_id).placement.machine_id

    story.warn(story.load(on_machine).instance_id or "")
    story.settle()

    # It has to leave all the same; nothing is bought meanwhile.
    assert story.job(job_id).state is JobState.STOPPING
    assert len(story.fleet.requests) == 1
    assert "no next machine" in story.log.decisions
