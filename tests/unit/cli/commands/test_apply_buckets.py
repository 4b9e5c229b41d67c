"""apply and submit, with what is known of the bucket of the checkpoints."""

from dataclasses import replace

import pytest

from fakes.builders import make_definition
from fakes.cli_session import flat
from relaunch.core.checks import is_ok, problem, unknown
from relaunch.core.definitions.checkpoint_bucket import BucketFacts, CheckpointGrants
from relaunch.ports import TransientError

KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd"


class FakeBuckets:
    """Implements BucketSource; `facts` may be an error, which is raised."""

    facts: BucketFacts | Exception = BucketFacts()

    def describe(self, bucket: str) -> BucketFacts:
        assert bucket == "acme-checkpoints"
        if isinstance(self.facts, Exception):
            raise self.facts
        return self.facts


@pytest.fixture
def buckets(session) -> FakeBuckets:
    buckets = FakeBuckets()
    session.deps = replace(session.deps, buckets=buckets, checkpoint_grants=CheckpointGrants(("acme-checkpoints",)))
    return buckets


def grant_nothing(session) -> None:
    session.deps = replace(session.deps, checkpoint_grants=CheckpointGrants())


@pytest.mark.parametrize("facts", [BucketFacts(), TransientError("no answer")])
def test_apply_is_silent_about_a_bucket_that_the_stack_names(relaunch, file, buckets, facts):
    buckets.facts = facts

    result = relaunch("apply", str(file))

    assert result.exit_code == 0
    assert all(line.startswith("rule ") for line in result.stderr.splitlines())


def test_apply_refuses_a_bucket_that_is_not_there(relaunch, session, file, buckets):
    buckets.facts = BucketFacts(exists=False)

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    assert f"{file}:6:5: jobs.resnet: there is no bucket acme-checkpoints, which `checkpoint` names" in result.stderr
    assert "why it was rejected" not in result.stderr
    assert session.deps.definitions.load_definition("bert") is None


@pytest.mark.parametrize("command", ["apply", "plan"])
def test_a_bucket_and_a_key_that_the_stack_does_not_name_are_notices(relaunch, session, file, buckets, command):
    grant_nothing(session)
    buckets.facts = BucketFacts(key=KEY)

    result = relaunch(command, str(file))

    assert result.exit_code == 0
    told = flat(result.stdout + result.stderr)
    assert "CheckpointBuckets does not name acme-checkpoints" in told
    assert f"KMS key {KEY}, which the stack's CheckpointKeyArns does not name" in told


def test_submit_says_what_the_job_will_wait_for(relaunch, session, buckets):
    session.deps.definitions.save_definition(make_definition(checkpoint_uri="s3://acme-checkpoints/resnet/"))
    silent = relaunch("submit", "resnet")
    grant_nothing(session)
    told = relaunch("submit", "resnet")
    buckets.facts = BucketFacts(exists=False)
    missing = relaunch("submit", "resnet")

    assert silent.stderr == ""
    assert "CheckpointBuckets does not name acme-checkpoints" in flat(told.stderr)
    assert "there is no bucket acme-checkpoints" in flat(missing.stderr)


def test_submit_says_nothing_of_a_definition_without_checkpoints(relaunch, session, buckets):
    grant_nothing(session)
    session.deps.definitions.save_definition(make_definition(checkpoint_uri=None))

    assert relaunch("submit", "resnet").stderr == ""


UPLOADS = problem("uploads to acme", "EventBridge is not switched on for the bucket", "aws s3api put-bucket-...")
IMAGES = problem("images of trainer", "the repository does not exist", "aws ecr create-repository ...")


def test_apply_refuses_what_could_never_start_a_job_and_says_what_mends_it(relaunch, session, file):
    session.watched = [is_ok("uploads to other", "its events go to EventBridge"), UPLOADS, IMAGES]

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    assert "uploads to acme: EventBridge is not switched on for the bucket\n    aws s3api put-bucket" in result.stderr
    assert "images of trainer: the repository does not exist\n    aws ecr create-repository" in result.stderr
    assert "2 triggers could never start a job: nothing was registered" in result.stderr
    assert session.deps.definitions.load_definition("bert") is None
    assert session.upload_rules.found == {}


def test_apply_registers_it_all_the_same_where_nobody_is_to_look(relaunch, session, file):
    session.watched = [UPLOADS]

    assert relaunch("apply", str(file), "--unchecked").exit_code == 0
    assert session.deps.definitions.load_definition("bert") is not None


def test_apply_says_what_it_could_not_look_at(relaunch, session, file):
    session.watched = [unknown("uploads to acme", "you have no permission s3:GetBucketNotification", "grant it")]

    result = relaunch("apply", str(file))

    assert result.exit_code == 0
    assert "uploads to acme is not checked: you have no permission s3:GetBucketNotification; grant it" in result.stderr
