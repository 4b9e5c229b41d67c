from dataclasses import replace

import pytest

from relaunch.core.definitions.definition import S3Trigger
from unit.core.triggers.matched import UPLOAD, facts_of, matched, reason_against


@pytest.mark.parametrize(
    "trigger",
    [
        pytest.param(S3Trigger("acme-datasets"), id="any-upload"),
        pytest.param(S3Trigger("acme-datasets", "images/", ".manifest"), id="upload-by-prefix-and-suffix"),
    ],
)
def test_an_upload_starts_the_job_whose_trigger_it_fits(trigger):
    assert matched(UPLOAD, trigger).trigger is trigger


@pytest.mark.parametrize(
    ("trigger", "event", "reason"),
    [
        pytest.param(S3Trigger("other"), UPLOAD, "no trigger of resnet", id="other-bucket"),
        pytest.param(S3Trigger("acme-datasets", "video/"), UPLOAD, "does not start with video/", id="other-prefix"),
        pytest.param(S3Trigger("acme-datasets", "", ".csv"), UPLOAD, "does not end with .csv", id="other-suffix"),
        pytest.param(
            S3Trigger("acme-datasets"), replace(UPLOAD, key="images/"), "create for a folder", id="folder-of-a-console"
        ),
    ],
)
def test_an_upload_that_does_not_fit_starts_nothing_and_says_why(trigger, event, reason):
    assert reason in reason_against(event, trigger)


def test_the_training_and_people_are_told_of_the_object():
    assert facts_of(replace(UPLOAD, version_id="v7"), S3Trigger("acme-datasets")) == (
        "upload of s3://acme-datasets/images/a b.manifest",
        {"RELAUNCH_OBJECT_URI": "s3://acme-datasets/images/a b.manifest", "RELAUNCH_OBJECT_VERSION_ID": "v7"},
    )
