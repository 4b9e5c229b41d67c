import re

import pytest

from relaunch.adapters.kubernetes import labels
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.triggers.matching import MAX_JOB_ID_LENGTH

ATTEMPT = AttemptKey("resnet-1f2e3d4c5b6a", 2)
RFC_1123 = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def test_the_job_of_a_placement_is_named_after_it():
    assert labels.task_name(ATTEMPT, 3) == "resnet-1f2e3d4c5b6a-2-3"


def test_labels_tell_stack_job_attempt_and_placement():
    assert labels.task_labels("relaunch", ATTEMPT, 3) == {
        "relaunch/stack": "relaunch",
        "relaunch/task": "resnet-1f2e3d4c5b6a-2-3",
        "relaunch/job": "resnet-1f2e3d4c5b6a",
        "relaunch/attempt": "2",
        "relaunch/placement": "3",
    }


@pytest.mark.parametrize(
    "job_id",
    [
        pytest.param("a" * (MAX_JOB_ID_LENGTH - 13) + "-1f2e3d4c5b6a", id="longest"),
        pytest.param("a" * 45 + "----------------------b", id="cut at a hyphen"),
        pytest.param("Résumé_X", id="other letters"),
        pytest.param("---", id="hyphens only"),
    ],
)
def test_a_name_that_is_no_name_in_kubernetes_is_changed_and_stays_unique(job_id):
    key = AttemptKey(job_id, 999_999_999)

    name, label = labels.task_name(key, 12), labels.task_labels("s", key, 12)[labels.JOB]

    assert RFC_1123.fullmatch(name)
    assert RFC_1123.fullmatch(label)
    assert labels.task_name(AttemptKey(job_id + "x", 999_999_999), 12) != name
    assert labels.is_task_name(name)


def test_names_that_differ_in_case_only_are_different_tasks():
    assert labels.task_name(AttemptKey("Train", 1), 1) != labels.task_name(AttemptKey("train", 1), 1)


def test_the_owner_is_told_in_full():
    assert labels.owner_of(labels.owner_annotation(ATTEMPT)) == ATTEMPT


@pytest.mark.parametrize("value", ["", "resnet", "resnet/0", "resnet/x", "/1"])
def test_other_jobs_have_no_owner(value):
    assert labels.owner_of({labels.OWNER: value}) is None
    assert labels.owner_of({}) is None


def test_selectors():
    assert labels.select_stack("relaunch") == "relaunch/stack=relaunch"
    assert labels.select_tasks("relaunch", ["a-1-1", "b-1-1"]) == (
        "relaunch/stack=relaunch,relaunch/task in (a-1-1,b-1-1)"
    )
    assert labels.select_attempt("relaunch", ATTEMPT) == (
        "relaunch/stack=relaunch,relaunch/job=resnet-1f2e3d4c5b6a,relaunch/attempt=2"
    )


@pytest.mark.parametrize("name", ["", "A", "a)", "a,b", "a b", "-a", "a" * 64, "arn:aws:ecs:us-east-1:1:task/c/1"])
def test_what_is_no_name_is_never_part_of_a_selector(name):
    assert not labels.is_task_name(name)
