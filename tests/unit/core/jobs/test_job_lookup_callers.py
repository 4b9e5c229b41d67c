"""Who asks for a job, and whose it is."""

from dataclasses import replace

import pytest

from fakes.builders import make_job
from relaunch.core.jobs.job import INVOKE, is_own, keyed_identity

CI = "arn:aws:sts::111122223333:assumed-role/ci-vision"
USER = "arn:aws:iam::111122223333:user/vision/ada"


def test_every_caller_has_keys_of_its_own():
    keys = {keyed_identity(caller, key) for caller in (INVOKE, CI, USER) for key in ("k", f"{CI} k", "caller:k")}

    assert len(keys) == 9
    assert keyed_identity(INVOKE, "k") == "api:key:k"


@pytest.mark.parametrize(
    ("job_of", "caller", "expected"),
    [
        *((CI, CI, True), (CI, USER, False), (CI, INVOKE, False)),
        *((INVOKE, INVOKE, True), (INVOKE, CI, False), ("", INVOKE, True), ("", CI, False)),
    ],
)
def test_a_job_is_its_callers_own_and_that_of_an_event_is_no_callers_of_the_url(job_of, caller, expected):
    job = make_job()

    assert is_own(replace(job, trigger=replace(job.trigger, caller=job_of)), caller) is expected
