"""Which machines a job needs."""

import pytest

from relaunch.core.jobs.job import claimed_machines
from unit.core.lifecycle.table_matrix import SITUATIONS


@pytest.mark.parametrize(
    ("situation", "claimed"),
    [("w0", set()), ("wm", {"m-1"}), ("ru", set()), ("ro", {"m-0"}), ("so", {"m-0"}), ("sp", {"m-0", "m-1"})],
)
def test_a_job_claims_the_machine_of_its_task_and_the_one_for_its_next_placement(situation: str, claimed: set[str]):
    assert claimed_machines(SITUATIONS[situation]) == claimed


@pytest.mark.parametrize("situation", ["wr", "ok", "ng", "ca", "to"])
def test_a_task_that_has_stopped_and_a_job_that_is_over_need_none(situation: str):
    assert claimed_machines(SITUATIONS[situation]) == set()
