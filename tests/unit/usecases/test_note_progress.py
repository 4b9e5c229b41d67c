"""What reconcile notes of the trainings that run, and what it does not let disturb it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fakes.builders import NOW, make_definition, make_running_job
from fakes.story import MINUTE, Story
from relaunch.core.definitions.targets import Target
from relaunch.core.lifecycle.metrics import Metric
from relaunch.ports import PermanentError, TransientError
from relaunch.ports.checkpoints import TooManyObjectsError
from relaunch.usecases.note_progress import FEW_PAGES, POLLED_EVERY, note_progress_of


@pytest.fixture
def saving(story, running_id) -> Story:
    """Return a story whose job has saved checkpoints ten minutes apart."""
    story.checkpoints.complete[running_id] = f"s3://acme-checkpoints/resnet/{running_id}/attempt-1/step-0000200/"
    story.checkpoints.saved_at = story.now
    story.checkpoints.earlier = tuple((200 - 25 * n, story.now - 10 * n * MINUTE) for n in (4, 3, 2, 1))
    return story


def note(story, job_id, after=0 * MINUTE, *, has_time=True) -> int:
    story.clock.advance(after)
    return note_progress_of([story.job(job_id)], story.now, story.deps, lambda _pages: has_time)


def test_how_far_a_training_is_is_kept_with_its_job_and_in_lists(saving, running_id):
    assert note(saving, running_id) == 1

    (listed,), _ = saving.jobs.list_jobs(1)
    assert (listed.noted.step, listed.noted.at, listed.noted.interval_seconds) == (200, saving.now, 600.0)
    assert saving.job(running_id).noted == listed.noted


def test_a_look_that_finds_nothing_newer_writes_nothing(saving, running_id):
    note(saving, running_id)
    version = saving.job(running_id).version

    note(saving, running_id, after=MINUTE)

    assert saving.job(running_id).version == version


def test_a_training_that_stalls_alarms_once_and_again_after_it_has_saved(saving, running_id):
    counts = []
    for after in (MINUTE, 29 * MINUTE, MINUTE, 60 * MINUTE):
        note(saving, running_id, after)
        counts.append(len(saving.metrics.values(Metric.TRAININGS_STALLED)))
    saving.checkpoints.complete[running_id] = f"s3://acme-checkpoints/resnet/{running_id}/attempt-1/step-0000300/"
    saving.checkpoints.saved_at = saving.now
    for after in (MINUTE, 310 * MINUTE):
        note(saving, running_id, after)
        counts.append(len(saving.metrics.values(Metric.TRAININGS_STALLED)))

    assert counts == [0, 0, 1, 1, 1, 2]
    assert [entry.event for entry in saving.jobs.load_history(running_id).timeline][-3:] == [
        "saves nothing",
        "saves again",
        "saves nothing",
    ]


@pytest.mark.parametrize("refusal", [TransientError("SlowDown"), PermanentError("AccessDenied")])
def test_a_bucket_that_cannot_be_read_disturbs_nothing(saving, running_id, refusal):
    saving.checkpoints.refusal = refusal

    assert note(saving, running_id) == 1

    assert saving.job(running_id).noted is None
    assert "progress not noted" in saving.log.decisions


def test_without_time_nothing_is_read_and_how_many_are_left_out_is_counted(saving, running_id):
    assert note(saving, running_id, has_time=False) == 0
    assert saving.metrics.values(Metric.PROGRESS_LEFT_OUT) == [1]
    assert "progress left out" in saving.log.decisions


class Account:
    """Jobs that run and save, and a function that has time to list so many pages in each run."""

    def __init__(self, pages_of: list[int], time_for: int) -> None:
        self.story = Story()
        self.jobs = [make_running_job(job_id=f"resnet-{number:03d}") for number in range(len(pages_of))]
        self.objects = {job.job_id: 1_000 * pages for job, pages in zip(self.jobs, pages_of, strict=True)}
        self.time_for = time_for
        self.left = 0
        self.noted: list[set[str]] = []
        self.story.deps = replace(self.story.deps, checkpoints=self)

    def newest_saved(self, _uri: str, job_id: str, *, at_most: int, **_: object) -> None:
        objects = self.objects[job_id]
        self.left -= min(objects, at_most) // 1_000
        if objects > at_most:
            raise TooManyObjectsError(job_id)
        self.noted[-1].add(job_id)

    def run(self, look: int) -> None:
        self.left = self.time_for
        self.noted.append(set())
        minute = datetime.fromtimestamp((29_600_000 + 10 * look) * 60, UTC)
        note_progress_of(self.jobs, minute, self.story.deps, lambda pages: self.left >= pages)

    @property
    def left_out(self) -> list[float]:
        return self.story.metrics.values(Metric.PROGRESS_LEFT_OUT)


def test_each_of_six_hundred_jobs_is_looked_for_within_thirteen_looks_that_have_time_for_sixty():
    account = Account([1] * 600, 60 + FEW_PAGES - 1)
    for look in range(13):
        account.run(look)

    assert [len(each) for each in account.noted] == [60] * 13
    assert len(set.union(*account.noted)) == 600
    assert account.left_out == [540] * 13


@pytest.mark.parametrize(("time_for", "least_noted"), [(500, 22), (250, 21), (150, 10)])
def test_a_job_of_a_hundred_thousand_objects_does_not_take_the_time_of_the_others(time_for, least_noted):
    account = Account([100, *[1] * 20, 100], time_for)
    for look in range(20):
        account.run(look)

    assert min(len(each) for each in account.noted) >= least_noted
    assert set.union(*account.noted) == account.objects.keys()
    assert sum(account.left_out) == 20 * 22 - sum(len(each) for each in account.noted)


def test_jobs_with_many_objects_get_time_beside_any_number_of_others():
    account = Account([100, *[1] * 600, 100], 200)
    for look in range(20):
        account.run(look)

    assert set.union(*account.noted) == account.objects.keys()


def test_a_job_with_more_objects_than_are_ever_listed_is_said_not_to_be_noted():
    account = Account([101], 1_000)
    account.run(0)

    assert account.story.log.decisions == ["progress not noted"]
    assert account.left_out == []


def test_only_what_runs_and_saves_is_looked_for(story, placed_id):
    without = Story(make_definition(checkpoint_uri=None))

    assert note(story, placed_id) == 0
    assert note(without, without.launch()) == 0


def test_before_the_first_checkpoint_there_is_nothing_to_note(story, running_id):
    assert note(story, running_id) == 1
    assert story.job(running_id).noted is None


def test_what_is_looked_at_every_minute_is_looked_for_every_few(story):
    from unit.usecases.test_reconcile_jobs_polling import ON_ACS  # noqa: PLC0415 - its story alone

    on_acs = Story(ON_ACS, target=Target.ACS)
    job_id = on_acs.launch()

    looks = [
        note_progress_of([on_acs.job(job_id)], NOW + timedelta(minutes=minute), on_acs.deps, lambda _pages: True)
        for minute in range(4 * POLLED_EVERY)
    ]

    assert sum(looks) == 4


def saves(story, job_id, step: int, minutes: int) -> None:
    """Let the job save a checkpoint every ten minutes, each 600 steps after the one before."""
    story.checkpoints.complete[job_id] = f"s3://acme-checkpoints/resnet/{job_id}/attempt-1/step-{step:07d}/"
    story.checkpoints.saved_at = story.now + minutes * MINUTE
    story.checkpoints.earlier = tuple(
        (step - 600 * each, story.now + (minutes - 10 * each) * MINUTE) for each in (3, 2, 1)
    )


def test_what_checkpoints_show_of_the_speed_is_learned_once_for_the_next_jobs(saving, running_id):
    for step, minutes in ((2400, 10), (2400, 10), (3000, 20), (2400, 10)):
        saves(saving, running_id, step, minutes)
        note(saving, running_id)

    (record,) = saving.deps.rates.load_rates("resnet")
    assert (record.accelerators, record.version) == ("A10G", 2)
    (observed,) = record.observed
    assert (observed.job_id, observed.step, observed.steps_per_second) == (running_id, 3000, 1.0)


def test_a_look_that_finds_nothing_newer_does_not_even_read_what_was_learned(saving, running_id):
    saves(saving, running_id, 2400, 10)
    note(saving, running_id)
    saving.deps.rates.load_rate = None

    assert note(saving, running_id) == 1

    assert "progress not noted" not in saving.log.decisions


@pytest.mark.parametrize(("lost", "learned"), [(2, 1), (3, 0)])
def test_a_write_that_another_function_was_quicker_with_is_repeated_and_at_last_left_to_the_next(
    saving, running_id, monkeypatch, lost, learned
):
    saves(saving, running_id, 2400, 10)
    save_rate = saving.deps.rates.save_rate
    losses = iter([False] * lost)
    monkeypatch.setattr(saving.deps.rates, "save_rate", lambda record: next(losses, True) and save_rate(record))

    note(saving, running_id)

    assert len(saving.deps.rates.load_rates("resnet")) == learned
    assert saving.job(running_id).noted.step == 2400


def test_where_nothing_can_be_learned_progress_is_noted(saving, running_id, monkeypatch):
    def refuse(*_: object) -> None:
        raise TransientError("throttled")

    monkeypatch.setattr(saving.deps.rates, "load_rate", refuse)
    saves(saving, running_id, 2400, 10)

    assert note(saving, running_id) == 1

    assert saving.job(running_id).noted.step == 2400
