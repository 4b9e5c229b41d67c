"""How many jobs wait, and whether one more may."""

import pytest

from fakes.builders import make_definition
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.triggers.matching import derive_job_id, with_caller
from relaunch.core.triggers.waiting_jobs import WaitingJobs, count_waiting, limits_of_requests, read_limit

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


@pytest.mark.parametrize(
    ("limits", "has_triggers", "of_requests"),
    [((1000, 5000), True, (500, 2500)), ((1000, 5000), False, (1000, 2500)), ((1, 3), True, (1, 2))],
)
def test_requests_fill_half_of_what_may_wait_and_all_of_a_definition_that_no_event_starts(
    limits: tuple[int, int], has_triggers: bool, of_requests: tuple[int, int]
):
    assert limits_of_requests(*limits, has_triggers=has_triggers) == of_requests


@pytest.mark.parametrize(
    ("of_definition", "of_stack", "is_reached"), [(1, 2, False), (2, 2, True), (1, 3, True), (3, 5, True)]
)
def test_a_request_is_refused_where_an_event_still_starts_its_job(of_definition, of_stack, is_reached):
    waiting = WaitingJobs("resnet", of_definition, 4, of_stack, 6)

    assert waiting.reached_limit == ""
    assert waiting.reached_limit_of_requests == (
        f"too many jobs wait: {waiting}; requests of job_api may fill 2 of the first and 3 of the second limit, what "
        "is left is kept for events; no job was started: try again when fewer wait, or raise the limit"
        if is_reached
        else ""
    )


def test_one_caller_fills_half_of_what_requests_may_and_leaves_the_other_half_to_others():
    limits = StackLimits(max_running_jobs=2, max_waiting_jobs=8)
    ours = [with_caller(job_id, "ours") for job_id in ids("bert", 3)]
    definition = make_definition(max_waiting_jobs=8)

    def count(caller: str, jobs: list[str]) -> WaitingJobs:
        return count_waiting(definition, jobs, ["bert-held", ours[2]], limits, caller)

    assert [count(caller, ours).of_caller for caller in ("ours", "theirs", "")] == [2, 0, 0]
    assert count("ours", ours).reached_limit_of_requests == (
        "too many of your jobs wait: 2, and one caller of job_api may have 2 waiting in the stack (MaxWaitingJobs is "
        "8), so that others start theirs; no job was started: try again when fewer wait, or raise the limit"
    )
    assert count("ours", ours[:1]).reached_limit_of_requests == ""
    assert count("theirs", ours).reached_limit_of_requests == ""
    assert count("ours", ours).reached_limit == ""
