"""What an attempt lost, tries that never ran, and machines that lived longer than their attempts."""

from dataclasses import replace

import pytest

from fakes import machines as own_machines
from fakes.builders import NOW, make_definition, make_job, make_placement
from fakes.job_histories import JOB_ID, MINUTE, TrainingStory, after, checkpoint, entry, make_history, ran
from relaunch.core.jobs.attempt import Attempt, IntentKind, PlacementState, StopIntent, StopKind
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.reported import SeriesPoint
from relaunch.core.jobs.state import JobState
from relaunch.core.jobs.training import TrainingProgress
from relaunch.core.lifecycle.start_stages import Start, StartRecord, StartState
from relaunch.core.machines.events import RefusalKind
from relaunch.core.machines.machine import MachineState, MachineTimelineEntry
from relaunch_cli.dashboard.drawings.drawing import RowKind, SpanKind
from relaunch_cli.dashboard.drawings.timeline import make_timeline
from relaunch_cli.job_starts import load_starts

W = JobState.WAITING
L = JobState.LAUNCHING
R = JobState.RUNNING
# Step 20 was done 20 minutes after NOW.
STEPS = TrainingProgress(series=(SeriesPoint(10, after(10).timestamp()), SeriesPoint(20, after(20).timestamp())))


ASKED = StopIntent(IntentKind.INTERRUPTION, after(29), "the next machine is ready")


def draw(history, starts=(), machines=(), training=STEPS, saved=None, now=None):
    return make_timeline(history, starts, machines, training, now or after(600), saved)


def lost(first: Attempt, resume_uri: str | None, **options) -> tuple[float, float, str] | None:
    """Return what the first attempt lost, in minutes after NOW and in words, if the second was given this."""
    second = options.pop("second", ran(2, 40, 60, resume_uri=resume_uri))
    definition = options.pop("definition", make_definition(checkpoint_uri="s3://acme-checkpoints/resnet/"))
    row = draw(make_history([first, second], definition=definition), **options).rows[1]
    found = [each for each in row.spans if each.kind is SpanKind.LOST]
    if not found:
        return None
    assert found[0].ended_at is not None
    return (found[0].began_at - NOW) / MINUTE, (found[0].ended_at - NOW) / MINUTE, found[0].title


def test_what_was_trained_after_the_checkpoint_that_the_next_attempt_resumed_from_is_lost():
    assert lost(ran(1, 0, 30), checkpoint(20)) == (20, 30, "lost work: attempt 2 went on from step 20")


@pytest.mark.parametrize(
    ("resume_uri", "words"),
    [
        (None, "began from the beginning"),
        (checkpoint(20, job_id="resnet-other"), "began from another job's checkpoint"),
    ],
)
def test_an_attempt_without_a_checkpoint_of_its_own_lost_everything(resume_uri, words):
    assert lost(ran(1, 0, 30), resume_uri) == (1, 30, f"lost work: attempt 2 {words}")


def test_an_attempt_after_which_an_earlier_checkpoint_was_resumed_from_lost_everything():
    third = ran(3, 40, 60, resume_uri=checkpoint(20, 1))

    assert lost(ran(2, 0, 30), None, second=third) == (
        1,
        30,
        "lost work: attempt 3 began from step 20, which it had not saved",
    )


def test_the_time_of_the_newest_attempts_checkpoints_is_known_without_a_series():
    saved = SavedCheckpoint(checkpoint(20), 20, 1, after(25))

    assert lost(ran(1, 0, 30), checkpoint(20), training=TrainingProgress(), saved=saved) == (
        25,
        30,
        "lost work: attempt 2 went on from step 20",
    )


@pytest.mark.parametrize(
    ("first", "options"),
    [
        pytest.param(ran(1, 0, 30), {"training": TrainingProgress()}, id="when the step was done is not known"),
        pytest.param(ran(1, 25, 30), {}, id="the step of the series is not of this attempt"),
        pytest.param(ran(1, 0, 20.1), {}, id="six seconds are within what clocks differ"),
        pytest.param(ran(1, 0, 30, warned_at=after(19), intent=ASKED), {}, id="it was saved after the warning"),
        pytest.param(ran(1, 0, 30), {"second": ran(2, 40, 50, started_at=None)}, id="the next one did not run"),
        pytest.param(
            ran(1, 0, 30), {"definition": make_definition(checkpoint_uri=None)}, id="nobody says where it saves"
        ),
    ],
)
def test_where_it_is_not_known_nothing_is_said_to_be_lost(first, options):
    assert lost(first, checkpoint(20), **options) is None


def test_the_newest_attempt_and_one_that_runs_have_lost_nothing_yet():
    running = draw(make_history([ran(1, 0, None)], state=R)).rows[1]
    failed = draw(make_history([ran(1, 0, 30, StopKind.USER_ERROR)])).rows[1]

    assert [each.kind for each in (*running.spans, *failed.spans)] == [SpanKind.BOOTING, SpanKind.TRAINING] * 2


def test_an_attempt_without_a_stop_does_not_run_beside_the_next_one_for_ever():
    timeline = draw(make_history([ran(1, 0, None), ran(2, 40, None, resume_uri=checkpoint(20))], state=R))

    assert [each.ended_at for each in timeline.rows[1].spans] == [after(1), after(40), after(40)]
    assert timeline.rows[2].spans[-1].ended_at is None


def failed_tries(count: int, first: float = 0.0, number: int | None = None):
    for index in range(count):
        yield entry(first + index, W, "machine claimed", number, "EC2 is asked for g5.xlarge")
        yield entry(first + index + 0.2, W, "waiting for machine", number)
        yield entry(first + index + 0.5, W, "machine lost", number, "EC2 has no capacity for it")


def test_tries_that_never_ran_are_one_row_between_the_attempts():
    timeline = (
        *failed_tries(37),
        entry(40, L, "launching", 1),
        entry(41, R, "running", 1),
        entry(60, W, "stopped: host-lost", 1),
        *failed_tries(1, 61, 1),
        entry(64, L, "launching", 2, "g5.xlarge"),
        entry(65, W, "placement failed", 2, "RESOURCE:GPU"),
        entry(70, L, "launching", 2),
        entry(71, R, "running", 2),
    )

    found = draw(make_history([ran(1, 40, 60), ran(2, 70, None)], timeline, state=R), now=after(80))

    assert [(each.name, each.place, each.outcome) for each in found.rows[1::2]] == [
        ("37 tries", "never ran", "all: EC2 has no capacity for it"),
        ("2 tries", "never ran", "the last: RESOURCE:GPU"),
    ]
    assert [each.name for each in found.rows[2::2]] == ["Attempt 1", "Attempt 2"]
    assert len(found.rows[1].spans) == 37
    assert found.rows[1].spans[0].duration(NOW) == MINUTE / 2
    assert found.rows[1].spans[0].title == (
        "a try that never ran: EC2 is asked for g5.xlarge; EC2 has no capacity for it"
    )
    assert "39 starts came to nothing" in found.summary
    kinds = [each.kind for each in found.rows[0].spans]
    assert kinds.count(SpanKind.FAILED_START) == 39


def test_a_try_that_goes_on_is_none_that_failed():
    waiting = (entry(0, W, "accepted"), *failed_tries(1, 5), entry(10, W, "machine claimed"))

    found = draw(make_history((), waiting), now=after(20))

    assert [(each.kind, each.name) for each in found.rows[1:]] == [(RowKind.TRIES, "1 try")]
    assert found.rows[0].spans[-1].kind is SpanKind.BOOTING


def test_an_attempt_of_which_nobody_knows_whether_it_ran_has_a_row():
    placement = make_placement(state=PlacementState.CLOSED, is_lost=True, requested_at=after(1))
    timeline = (entry(1, L, "launching", 1), entry(9, W, "try closed", 1))

    found = draw(make_history([Attempt(1, placement)], timeline))

    assert [(each.name, each.outcome) for each in found.rows[1:]] == [("Attempt 1", "whether it ran is not known")]


def test_a_machine_that_was_requested_while_a_task_ran_and_came_to_nothing_is_a_try():
    stopped = Start(StartRecord(2, machine=own_machines.machine()), StartState.STOPPED, (), after(20), "no capacity")

    found = draw(make_history([ran(1, 0, None)], state=R), [stopped])

    assert [(each.name, each.outcome) for each in found.rows[2:]] == [("1 try", "no capacity")]


def test_real_tries_without_capacity_are_one_row_and_the_machine_that_starts_is_the_next_attempt():
    story = TrainingStory()
    story.deliver()
    requested = [each.offering for each in story.machine(story.job_id).request.overrides]
    story.fleet.refused = dict.fromkeys(requested, (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity"))
    story.make_ec2_calls()
    story.deliver()
    story.fleet.refused = {}
    story.settle_all()

    history = story.jobs.load_history(story.job_id)
    starts = load_starts(history, story.deps.machines, story.now, is_full=True)
    timeline = draw(history, starts, now=story.clock.advance(60))

    assert [(each.kind, each.name) for each in timeline.rows[1:]] == [
        (RowKind.TRIES, "1 try"),
        (RowKind.ATTEMPT, "Attempt 1"),
    ]
    assert timeline.rows[2].outcome == "its machine starts"
    assert timeline.rows[2].spans[-1].ended_at is None


def machine(*events, **fields):
    built = own_machines.machine(MachineState.READY, **{"registered_at": after(5), "created_at": NOW, **fields})
    return replace(built, timeline=tuple(MachineTimelineEntry(after(at), state, event) for at, state, event in events))


READY = (5, MachineState.READY, "ready")
ENDED = (90, MachineState.ENDING, "idle")


def on_machine(first: float, *, until: float | None, job=None):
    attempt = ran(1, first, until, machine_id="m-1")
    return make_history([attempt], job=job) if job else make_history([attempt], state=R)


def test_a_machine_that_stays_after_its_attempt_has_a_row_with_the_time_it_was_unused():
    found = draw(on_machine(5, until=60), machines=[machine(READY, ENDED)], now=after(120))

    row = found.rows[2]
    assert (row.kind, row.place) == (RowKind.MACHINE, f"{own_machines.INSTANCE} g5.xlarge spot us-east-1a")
    assert row.outcome == "unused by this job for 30m00s"
    assert [(each.kind, each.began_at, each.ended_at) for each in row.spans] == [(SpanKind.IDLE, after(60), after(90))]
    assert {each.name: each.text for each in found.totals}["machine unused"] == "30m00s"


def test_a_machine_that_is_still_there_is_unused_until_now():
    found = draw(on_machine(5, until=60), machines=[machine(READY)], now=after(120))

    assert found.rows[2].outcome == "unused by this job for 1h00m so far"


def test_a_machine_that_booted_before_its_attempt_has_a_row_with_its_boot():
    found = draw(on_machine(30, until=None), machines=[machine(READY)], now=after(120))

    assert [(each.kind, each.began_at, each.ended_at) for each in found.rows[2].spans] == [
        (SpanKind.BOOTING, NOW, after(5)),
        (SpanKind.IDLE, after(5), after(30)),
    ]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(machine(READY, (60.5, MachineState.ENDING, "terminated")), id="it ended with its attempt"),
        pytest.param(machine(READY, ended_at=after(60.9)), id="EC2 says so"),
        pytest.param(machine(READY, machine_id="m-2"), id="no attempt was on it"),
    ],
)
def test_a_machine_that_lived_no_longer_than_its_attempt_has_no_row(given):
    assert len(draw(on_machine(5, until=60), machines=[given], now=after(120)).rows) == 2


def test_what_a_machine_does_after_the_end_of_the_job_is_not_of_the_job():
    attempt = ran(1, 5, 60, StopKind.SUCCESS, machine_id="m-1")
    job = make_job(JOB_ID, attempt=attempt, state=JobState.SUCCEEDED, ended_at=after(60), waiting=None)

    assert len(draw(make_history([attempt], job=job), machines=[machine(READY, ENDED)]).rows) == 2
