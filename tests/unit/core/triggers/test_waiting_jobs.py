"""How many jobs wait, and whether one more may."""

import pytest

from fakes.builders import make_definition
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.triggers.matching import derive_job_id
from relaunch.core.triggers.waiting_jobs import WaitingJobs, count_waiting, read_limit

LIMITS = StackLimits(max_running_jobs=2, max_waiting_jobs=3)


def ids(definition: str, number: int) -> list[str]:
    return [derive_job_id(f"event {each}", definition) for each in range(number)]


def test_what_holds_a_slot_does_not_wait_and_names_are_told_apart_exactly():
    jobs = [*ids("resnet", 5), *ids("resnet-big", 2)]

    waiting = count_waiting(make_definition(max_waiting_jobs=9), jobs, [jobs[0], "resnet-unheard"], LIMITS)

    assert waiting == WaitingJobs("resnet", 4, 9, 6, 3)


def test_as_many_open_jobs_as_are_read_reach_the_limit_of_the_stack_however_many_run():
    jobs = ids("bert", read_limit(LIMITS))

    assert count_waiting(make_definition(), jobs, jobs[:2], LIMITS).reached_limit


@pytest.mark.parametrize(
    ("of_definition", "of_stack", "is_reached"),
    [(1, 2, False), (2, 2, True), (1, 3, True), (3, 4, True), (0, 0, False)],
)
def test_a_limit_that_is_met_lets_no_further_job_in(of_definition, of_stack, is_reached):
    waiting = WaitingJobs("resnet", of_definition, 2, of_stack, 3)

    assert waiting.reached_limit == (
        f"too many jobs wait: {of_definition} of resnet (max_waiting_jobs is 2), {of_stack} in the stack "
        "(MaxWaitingJobs is 3); no job was started: try again when fewer wait, or raise the limit"
        if is_reached
        else ""
    )
