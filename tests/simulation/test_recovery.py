import json
from datetime import timedelta
from functools import cache

import pytest

from relaunch_local.simulation import Options, recovery
from relaunch_local.simulation.paid_time import IDLE_PARTS
from relaunch_local.simulation.recovery import PARTS, TIMING, Way, main, measure_loss, measure_refusal, scenario_of
from relaunch_local.simulation.recovery import measure as measure_anew
from relaunch_local.simulation.run import SeedRun
from simulation.planting import patched

# Several tests look at one interruption.
measure = cache(measure_anew)
# The time that instances need, whatever Relaunch does.
FROM_NOTHING = TIMING.scale_out + TIMING.boot + TIMING.registration + TIMING.pull
SAVED_AND_GONE = 20.0


@pytest.mark.parametrize(("way", "least"), [(Way.NO_INSTANCE, FROM_NOTHING), (Way.INSTANCE, TIMING.pull)])
def test_an_interrupted_training_is_away_for_little_more_than_instances_take(way, least):
    recovery = measure(3, way)

    assert recovery.run_task_to_running >= least
    assert recovery.sigterm_to_stopped >= SAVED_AND_GONE
    assert least + SAVED_AND_GONE < recovery.warning_to_running < least + SAVED_AND_GONE + 30


@pytest.mark.parametrize("way", Way)
def test_the_parts_are_the_whole(way):
    recovery = measure(3, way)

    assert recovery.sigterm_to_running + recovery.warning_to_sigterm == pytest.approx(recovery.warning_to_running)
    assert 0 < recovery.own_share < 10


def test_the_next_machine_starts_while_the_task_on_the_old_one_saves():
    own, provider = measure(3, Way.OWN), measure(3, Way.NO_INSTANCE)

    assert own.sigterm_to_running < provider.sigterm_to_running - SAVED_AND_GONE
    # User data pulls the image before the task asks for it.
    assert own.run_task_to_running < TIMING.pull


def test_a_task_that_is_stopped_when_the_next_machine_is_ready_trains_for_longer():
    at_warning, when_ready = measure(3, Way.OWN), measure(3, Way.OWN_READY)

    # 20 seconds after the warning, which leaves 90 and ten to spare.
    assert 20 < when_ready.warning_to_sigterm < 24
    assert when_ready.sigterm_to_running < at_warning.sigterm_to_running - 15


def test_on_a_recommendation_it_trains_while_the_next_machine_starts():
    at_once, when_ready = measure(3, Way.OWN_REBALANCE), measure(3, Way.OWN_READY_REBALANCE)

    assert when_ready.sigterm_to_running < at_once.sigterm_to_running - 60
    # The old machine is paid for while it trains, which is not idle.
    assert when_ready.idle.total == pytest.approx(at_once.idle.total, rel=0.1)


def test_what_is_paid_without_a_task_is_where_it_is_lost():
    own, provider, kept = measure(3, Way.OWN).idle, measure(3, Way.NO_INSTANCE).idle, measure(3, Way.INSTANCE).idle

    assert own.total == pytest.approx(own.boot + own.waiting + own.pull + own.save + own.ending)
    assert own.save == pytest.approx(SAVED_AND_GONE, abs=5)
    # What the end of the last task means is decided ten seconds after it.
    assert own.ending < 12
    assert provider.ending >= 900
    # Managed scaling's first scale-out may start two instances, and one that is kept waits all the time.
    assert own.waiting < 10 < provider.waiting < kept.waiting


@pytest.mark.parametrize("way", [Way.OWN, Way.OWN_READY])
def test_with_faults_an_interruption_costs_training_in_some_seeds_and_in_most_it_does_not(way):
    # In every fourth seed agents disconnect for good as they are to stop a task.
    losses = [measure_loss(seed, way) for seed in range(16) if seed % 4 != 3]

    assert losses.count(0.0) > 6
    assert 0 < max(losses) <= 3_600 + 600


@pytest.mark.parametrize(("way", "seconds"), [(Way.OWN, 115.0), (Way.OWN_READY, 95.0)])
def test_a_kill_costs_time_to_save_only_until_the_messages_for_the_last_moment_are_sent(way, seconds):
    undisturbed, steps, first_after = time_to_save(way)
    assert seconds < undisturbed < seconds + 5
    before, after = steps[: first_after - steps[0]], steps[first_after - steps[0] :]

    # The message of the warning comes back after a minute.
    assert min(time_to_save(way, step)[0] for step in before) > 120 - 60 - 5
    # Once they are on their way, the last moment has two messages; a stop at the warning has none.
    if way is Way.OWN_READY:
        assert len(after) > 30
        assert min(time_to_save(way, step)[0] for step in after) > 90


def time_to_save(way: Way, killed_at: int | None = None) -> tuple[float, range, int]:
    """Return the seconds from SIGTERM to the instance's end, the steps before it, the first one after a message.

    The steps are those from the warning to SIGTERM; the message is the one for the last moment.
    """
    options = Options(
        without_faults=True,
        scenario=scenario_of(3, way),
        is_killed_at=lambda _step: account.runtime.steps == killed_at,
    )
    account = SeedRun(3, options).account
    sent_at: list[int] = []

    def is_over() -> bool:
        (job,) = account.invariants.jobs.values()
        if job.current_attempt.warned_at is not None and account.queues.queues["AttemptsQueue"].open_bodies:
            sent_at.append(account.runtime.steps)
        return training.is_over or training.terminated_at is not None

    try:
        assert account.clock.run_until(lambda: bool(account.trainings.running))
        account.clock.advance(300.0)
        first_step, warned_at = account.runtime.steps, account.clock.now()
        (training,) = account.trainings.running.values()
        account.simulator.instances.interrupt(next(e for e in account.simulator.instances.by_id.values() if e.tasks))
        account.clock.run_until(is_over)
        ends_at = warned_at + timedelta(seconds=120)
        left = ends_at - (training.terminated_at or ends_at)
        steps = range(first_step + 1, account.runtime.steps + 1)
        return left.total_seconds(), steps, sent_at[0] + 1 if sent_at else steps[-1]
    finally:
        account.close()


def test_an_offering_without_capacity_costs_seconds_with_ec2_fleet_and_minutes_with_a_capacity_provider():
    assert measure_refusal(3, Way.OWN) < 30
    assert measure_refusal(3, Way.NO_INSTANCE) > 600


def test_the_percentiles_are_printed(capsys):
    with patched(recovery, _LEAST_SEEDS=10):
        assert main(["--seeds", "10", "--json", "--way", "own_ready", "--way", "instance"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["seeds"] == 10
    assert list(document["seconds"]) == [str(Way.INSTANCE), str(Way.OWN_READY)]
    for rows in document["seconds"].values():
        assert list(rows)[: len(PARTS)] == list(PARTS)
        assert all(f"idle_{part}" in rows for part in IDLE_PARTS)
        assert all(0 <= half <= most for name, (half, most) in rows.items() if "with_faults_" not in name)
    mean, half_interval = rows["lost_training_with_faults_mean"]
    assert 0 < half_interval < 2 * mean
    assert 0 < rows["lost_training_with_faults_percent"][0] < 60


def test_too_few_seeds_for_a_95th_percentile_are_an_error(capsys):
    with pytest.raises(SystemExit):
        main(["--seeds", "3"])

    assert "--seeds must be at least 20" in capsys.readouterr().err
