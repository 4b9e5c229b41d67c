"""Checkpoints in OSS are read as those in S3 are, with credentials that expire."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from fakes.aws import aws_in_process, make_client
from relaunch.adapters.alibaba.oss_checkpoints import OssCheckpoints, endpoint_of
from relaunch.adapters.alibaba.ram_role import AssumedRole
from relaunch.adapters.alibaba.signature import Credentials
from relaunch.adapters.aws.checkpoints import S3Checkpoints
from relaunch.ports import PermanentError, TransientError

NOW = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)
BUCKET, JOB = "acme-oss", "resnet-1f2e3d4c"
ROOT = f"oss://{BUCKET}/resnet/"
MANIFEST = b'{"format": 1, "step": 100, "attempt": 1, "objects": [{"key": "weights", "size": 4, "sha256": "0"}]}'


class RamRole:
    """Gives out credentials for fifteen minutes; `error` is raised instead."""

    def __init__(self) -> None:
        self.now = NOW
        self.assumed: list[datetime] = []
        self.error: Exception | None = None
        self.says_when_it_expires = True

    def assume(self) -> AssumedRole:
        if self.error:
            raise self.error
        self.assumed.append(self.now)
        expires_at = self.now + timedelta(minutes=15) if self.says_when_it_expires else None
        return AssumedRole(Credentials("STS.id", "secret-of-role", "token-of-role"), expires_at)


@pytest.fixture
def role() -> RamRole:
    return RamRole()


@pytest.fixture
def checkpoints(role: RamRole) -> Iterator[OssCheckpoints]:
    with aws_in_process():
        client = make_client("s3")
        client.create_bucket(Bucket=BUCKET)
        yield OssCheckpoints(role.assume, lambda _role: S3Checkpoints(client, "oss"), lambda: role.now)


def save(step: int) -> str:
    prefix = f"resnet/{JOB}/attempt-1/step-{step:07d}/"
    client = make_client("s3")
    for key, body in (("weights", b"\0\1\2\3"), ("manifest.json", MANIFEST)):
        client.put_object(Bucket=BUCKET, Key=prefix + key, Body=body)
    return f"oss://{BUCKET}/{prefix}"


def test_the_newest_complete_one_is_found_under_its_own_scheme(checkpoints):
    assert checkpoints.newest_complete(ROOT, JOB) is None
    checkpoints.probe(ROOT, JOB)

    save(100)
    newest = save(200)

    assert checkpoints.newest_complete(ROOT, JOB) == newest
    assert checkpoints.newest_complete(ROOT, JOB, step=100, attempt=1) == newest.replace("0000200", "0000100")
    assert checkpoints.newest_complete(ROOT, JOB, attempt=2) is None
    saved = checkpoints.newest_saved(ROOT, JOB)
    assert saved is not None
    assert (saved.uri, saved.step, saved.attempt) == (newest, 200, 1)


def test_a_uri_of_s3_is_refused(checkpoints):
    with pytest.raises(PermanentError, match=r"is no URI of OSS \(oss://bucket/prefix/\)"):
        checkpoints.newest_complete("s3://acme/resnet/", JOB)


def test_credentials_are_used_until_a_minute_before_they_expire(checkpoints, role):
    for after in (0, 13, 14, 27):
        role.now = NOW + timedelta(minutes=after)
        checkpoints.probe(ROOT, JOB)

    assert role.assumed == [NOW, NOW + timedelta(minutes=14)]


def test_credentials_of_which_nothing_is_said_are_used_once(checkpoints, role):
    role.says_when_it_expires = False

    checkpoints.probe(ROOT, JOB)
    checkpoints.probe(ROOT, JOB)

    assert role.assumed == [NOW, NOW]


@pytest.mark.parametrize("error", [TransientError("STS is throttling"), PermanentError("check the trust policy")])
def test_a_role_that_cannot_be_assumed_is_tried_again_by_the_next_call(checkpoints, role, error):
    role.error = error
    with pytest.raises(type(error), match=str(error)):
        checkpoints.probe(ROOT, JOB)

    role.error = None
    checkpoints.probe(ROOT, JOB)


def test_the_endpoint_is_that_for_clients_of_s3():
    assert endpoint_of("cn-beijing") == "https://s3.oss-cn-beijing.aliyuncs.com"
