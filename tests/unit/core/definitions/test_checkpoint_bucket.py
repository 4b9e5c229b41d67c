"""What is said of the bucket of checkpoints before a job is launched."""

import pytest

from relaunch.core.definitions.checkpoint_bucket import (
    BucketFacts,
    CheckpointGrants,
    bucket_notices,
    bucket_of,
    bucket_problem,
)

KEY_ID = "1234abcd-12ab-34cd-56ef-1234567890ab"
KEY = f"arn:aws:kms:us-east-1:111122223333:key/{KEY_ID}"
ALIAS = "arn:aws:kms:us-east-1:111122223333:alias/training"
READABLE = CheckpointGrants(("other", "acme"))
DECRYPTABLE = CheckpointGrants(("acme",), (f"{KEY[:-1]}c", KEY))


@pytest.mark.parametrize("uri", ["s3://acme/resnet/", "s3://acme/", "s3://acme"])
def test_the_bucket_is_what_the_uri_names_first(uri):
    assert bucket_of(uri) == "acme"


def test_only_a_bucket_that_is_not_there_is_a_problem():
    assert bucket_problem("acme", BucketFacts()) == ""
    assert bucket_problem("acme", BucketFacts(exists=False)) == "there is no bucket acme, which `checkpoint` names"


@pytest.mark.parametrize(
    ("key", "grants", "missing"),
    [
        pytest.param("", READABLE, [], id="named"),
        pytest.param("", CheckpointGrants(("acme-2",)), ["CheckpointBuckets"], id="another-is-named"),
        pytest.param(KEY, CheckpointGrants(), ["CheckpointBuckets", "CheckpointKeyArns"], id="neither"),
        pytest.param(KEY, READABLE, ["CheckpointKeyArns"], id="its-key-is-not-named"),
        pytest.param(KEY, DECRYPTABLE, [], id="its-key-is-named"),
        pytest.param(KEY_ID, DECRYPTABLE, [], id="by-id"),
        pytest.param(KEY_ID[1:], DECRYPTABLE, ["CheckpointKeyArns"], id="by-part-of-an-id"),
        pytest.param(ALIAS, DECRYPTABLE, [], id="an-alias-may-be-of-a-named-key"),
        pytest.param(ALIAS, READABLE, ["CheckpointKeyArns"], id="an-alias-and-no-key"),
    ],
)
def test_what_the_stack_does_not_name_is_told(key, grants, missing):
    notices = bucket_notices("acme", BucketFacts(key=key), grants)

    assert len(notices) == len(missing)
    for notice, parameter in zip(notices, missing, strict=True):
        assert f"the stack's {parameter} does not name" in notice
        assert "acme" in notice
        assert key in notice or parameter == "CheckpointBuckets"
