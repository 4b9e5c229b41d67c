import json

import pytest

from relaunch_local.simulation.recovery import PARTS, TIMING, main, measure

# The time that instances need, whatever Relaunch does.
FROM_NOTHING = TIMING.scale_out + TIMING.boot + TIMING.registration + TIMING.pull
SAVED_AND_GONE = 20.0


@pytest.mark.parametrize(("is_warm", "least"), [(False, FROM_NOTHING), (True, TIMING.pull)])
def test_an_interrupted_training_is_away_for_little_more_than_machines_take(is_warm, least):
    recovery = measure(3, is_warm=is_warm)

    assert recovery.run_task_to_running >= least
    assert recovery.sigterm_to_stopped >= SAVED_AND_GONE
    assert least + SAVED_AND_GONE < recovery.warning_to_running < least + SAVED_AND_GONE + 30
    assert sum(getattr(recovery, part) for part in PARTS[:-1]) == pytest.approx(recovery.warning_to_running)


def test_the_percentiles_are_printed(capsys):
    assert main(["--seeds", "20", "--json"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["seeds"] == 20
    for rows in document["seconds"].values():
        assert list(rows) == list(PARTS)
        assert all(0 < half <= most for half, most in rows.values())


def test_too_few_seeds_for_a_95th_percentile_are_an_error(capsys):
    with pytest.raises(SystemExit):
        main(["--seeds", "3"])

    assert "--seeds must be at least 20" in capsys.readouterr().err
