import json

import pytest

from relaunch_local.simulation.recovery import PARTS, TIMING, Way, main, measure, measure_refusal

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


def test_an_offering_without_capacity_costs_seconds_with_ec2_fleet_and_minutes_with_a_capacity_provider():
    assert measure_refusal(3, Way.OWN) < 30
    assert measure_refusal(3, Way.NO_INSTANCE) > 600


def test_the_percentiles_are_printed(capsys):
    assert main(["--seeds", "20", "--json"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["seeds"] == 20
    assert list(document["seconds"]) == [str(way) for way in Way]
    for rows in document["seconds"].values():
        assert list(rows)[: len(PARTS)] == list(PARTS)
        assert all(0 < half <= most for half, most in rows.values())


def test_too_few_seeds_for_a_95th_percentile_are_an_error(capsys):
    with pytest.raises(SystemExit):
        main(["--seeds", "3"])

    assert "--seeds must be at least 20" in capsys.readouterr().err
