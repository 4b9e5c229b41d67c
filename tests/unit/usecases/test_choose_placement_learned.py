"""A job is launched where what its definition's jobs have shown of their speed says that it costs least."""

from dataclasses import replace

import pytest

from fakes.builders import NOW, make_definition, make_instance_type, make_offering
from fakes.market_story import HOUR, save
from fakes.sources import FakeOfferings
from fakes.story import Story
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, MeasuredOn, PurchaseOption
from relaunch.core.selection.rates import ObservedRate, RateRecord, work_of
from relaunch.ports import TransientError
from relaunch.usecases.note_progress import note_progress_of
from relaunch.usecases.plan_jobs import plan_jobs

TEN_HOURS = make_definition(
    estimated_duration=10 * HOUR,
    estimated_on=MeasuredOn("A10G"),
    total_steps=36_000,
    accelerator=AcceleratorRequirement(gpu=GpuRequirement(models=("A10G", "L4"))),
)
ONE_MODEL = replace(TEN_HOURS, accelerator=AcceleratorRequirement(gpu=GpuRequirement(models=("A10G",))))


G5 = make_offering("g5.xlarge", PurchaseOption.SPOT, price_usd_per_hour=0.40)
G6 = make_offering(
    instance_type=make_instance_type("g6.xlarge", accelerator_model="L4"),
    purchase=PurchaseOption.SPOT,
    price_usd_per_hour=0.45,
)


def learn(story: Story, definition=TEN_HOURS, **rates: float) -> None:
    for model, rate in rates.items():
        observed = ObservedRate("resnet-0", 1, 900, NOW, rate, work_of(definition))
        assert story.deps.rates.save_rate(RateRecord("resnet", model, (observed,)))


def launched_on(story: Story) -> str:
    story.launch()
    return story.tasks.requests[-1].capacity_provider


@pytest.mark.parametrize(
    ("rates", "chosen"),
    [
        pytest.param({}, "g5-xlarge-spot", id="nothing is known"),
        pytest.param({"A10G": 1.0, "L4": 1.3}, "g6-xlarge-spot", id="the one of a higher price is faster"),
        pytest.param({"A10G": 1.0, "L4": 1.05}, "g5-xlarge-spot", id="but not enough"),
        pytest.param({"L4": 1.0}, "g5-xlarge-spot", id="the other was measured by its owner"),
    ],
)
def test_what_jobs_have_shown_of_each_model_chooses_among_them(rates, chosen):
    story = Story(TEN_HOURS, offerings=FakeOfferings(G5, G6))
    learn(story, **rates)

    assert launched_on(story) == chosen


def test_what_cannot_be_read_is_not_known_and_delays_nothing(monkeypatch):
    story = Story(TEN_HOURS)

    def refuse(_definition: str) -> None:
        raise TransientError("a newer release wrote it")

    monkeypatch.setattr(story.deps.rates, "load_rates", refuse)

    assert launched_on(story) == "g5-xlarge-spot"
    assert "rates not read" in story.log.decisions


@pytest.mark.parametrize(
    ("definition", "reads"),
    [
        pytest.param(TEN_HOURS, 1, id="several models"),
        pytest.param(ONE_MODEL, 0, id="one model"),
        pytest.param(replace(ONE_MODEL, deadline=40 * HOUR), 1, id="one model, and a promise"),
        pytest.param(replace(TEN_HOURS, checkpoint_uri=None), 0, id="it saves nothing"),
        pytest.param(replace(TEN_HOURS, estimated_duration=None, total_steps=None), 0, id="work that is not known"),
        pytest.param(replace(TEN_HOURS, estimated_duration=None), 1, id="steps alone"),
    ],
)
def test_a_launch_reads_what_was_learned_once_and_only_where_it_may_matter(definition, reads, monkeypatch):
    story = Story(definition)
    load = story.deps.rates.load_rates
    read = []
    monkeypatch.setattr(story.deps.rates, "load_rates", lambda name: read.append(name) or load(name))

    story.launch()

    assert read == ["resnet"] * reads


def test_a_job_that_was_interrupted_is_placed_by_what_is_left_of_it():
    story = Story(TEN_HOURS)
    job_id = story.launch()
    save(story, job_id, 27_000)
    note_progress_of([story.job(job_id)], story.now, story.deps, lambda _: True)

    story.lose_host(job_id)
    story.settle()

    rows = story.jobs.load_history(job_id).selections[-1].rows
    assert rows[0]["expected_cost_usd"] < 1.5, "of ten hours at $0.40"


def test_a_plan_says_on_how_many_jobs_it_rests():
    story = Story(TEN_HOURS)
    learn(story, A10G=0.5)

    (plan,) = plan_jobs([TEN_HOURS], story.deps)

    assert plan.selection is not None
    speed = plan.selection.work.speed_of(plan.selection.kept[-1].instance_type)
    assert (speed.jobs, speed.expected) == (1, 0.5)
