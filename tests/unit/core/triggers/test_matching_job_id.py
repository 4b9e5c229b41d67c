import re

from hypothesis import given
from hypothesis import strategies as st

from relaunch.core.triggers.matching import derive_job_id, is_of_caller, with_caller


@given(st.text(min_size=0, max_size=300), st.text(max_size=200))
def test_a_job_id_is_short_and_plain_and_always_the_same(identity, definition):
    job_id = derive_job_id(identity, definition)

    assert re.fullmatch("[a-z0-9-]{14,100}", job_id)
    assert job_id == derive_job_id(identity, definition)


def test_a_long_name_is_cut_and_its_job_ids_still_differ():
    ids = {derive_job_id("a", "x" * 150 + end) for end in ("1", "2")}

    assert {len(job_id) for job_id in ids} == {96}
    assert {len(with_caller(job_id, "arn")) for job_id in ids} == {100}
    assert len(ids) == 2


def test_job_ids_differ_with_the_event_and_with_the_definition():
    ids = {derive_job_id(event, name) for event in ("a", "b", "a\0b") for name in ("resnet", "resnet-large", "b")}

    assert len(ids) == 9
    assert derive_job_id("a", "resnet").startswith("resnet-")


def test_a_job_id_has_no_hyphens_at_either_end_of_the_name():
    assert derive_job_id("a", "_ResNet 50_").rpartition("-")[0] == "resnet-50"


def test_a_text_that_is_no_unicode_has_a_job_id_too():
    assert derive_job_id("s3:bucket:\ud800", "resnet")


def test_a_job_id_says_which_caller_of_job_api_asked_for_the_job():
    ours, theirs = (f"arn:aws:sts::111122223333:assumed-role/{name}" for name in ("vision", "speech"))
    job_id = derive_job_id("a", "resnet-50")

    asked_for = with_caller(job_id, ours)

    assert asked_for.rpartition("-")[0] == "resnet-50"
    assert [is_of_caller(asked_for, each) for each in (ours, theirs)] == [True, False]
    assert not is_of_caller(job_id, ours)
