"""The bucket of checkpoints is looked at where AWS knows it."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.checkpoint_bucket import BucketFacts, CheckpointGrants
from relaunch.ports import TransientError
from relaunch.usecases.plan_jobs import check_bucket


def check(uri, buckets):
    deps = Mock(buckets=buckets, checkpoint_grants=CheckpointGrants())
    return check_bucket(replace(make_definition(), checkpoint_uri=uri), deps)


def test_a_bucket_that_is_not_there_is_a_problem():
    problem, notices = check("s3://acme/train/", Mock(describe=lambda _bucket: BucketFacts(exists=False)))

    assert (problem, notices) == ("there is no bucket acme, which `checkpoint` names", ())


@pytest.mark.parametrize("uri", [None, "oss://acme/train/"])
def test_nothing_is_asked_of_aws_without_a_bucket_of_its_own(uri):
    buckets = Mock()

    assert check(uri, buckets) == ("", ())
    buckets.describe.assert_not_called()


def test_a_bucket_that_cannot_be_looked_at_is_no_problem():
    problem, notices = check("s3://acme/train/", Mock(describe=Mock(side_effect=TransientError("throttled"))))

    assert problem == ""
    assert notices
