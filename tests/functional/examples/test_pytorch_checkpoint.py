"""What a PyTorch training copies to keep the contract: Relaunch finds its checkpoints, and it resumes from them."""

import importlib.util
from collections.abc import Iterator
from types import ModuleType

import pytest
from mypy_boto3_s3 import S3Client

from fakes.aws import aws_in_process, make_client
from fakes.repository import REPOSITORY
from relaunch.adapters.aws.checkpoints import S3Checkpoints

FILE = REPOSITORY / "examples" / "pytorch" / "checkpoint.py"
ATTEMPT_URI = "s3://relaunch-checkpoints/pytorch/job-1/attempt-2/"


@pytest.fixture(name="s3")
def _s3() -> Iterator[S3Client]:
    with aws_in_process():
        client: S3Client = make_client("s3")
        client.create_bucket(Bucket="relaunch-checkpoints")
        yield client


@pytest.fixture(name="checkpoint")
def _checkpoint(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    specification = importlib.util.spec_from_file_location("pytorch_checkpoint", FILE)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    for name, value in {"JOB_ID": "job-1", "ATTEMPT": "2", "CHECKPOINT_URI": ATTEMPT_URI}.items():
        monkeypatch.setenv(f"RELAUNCH_{name}", value)
    return module


def newest(s3: S3Client) -> str | None:
    return S3Checkpoints(s3).newest_complete("s3://relaunch-checkpoints/pytorch/", "job-1")


def test_relaunch_finds_what_was_saved_and_the_next_attempt_loads_it(
    s3: S3Client, checkpoint: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.save(b"early", 50, 0.7)
    checkpoint.save(b"late", 137, 0.5)

    found = newest(s3)

    assert found == f"{ATTEMPT_URI}step-0000137/"
    monkeypatch.setenv("RELAUNCH_RESUME_URI", found)
    assert checkpoint.load() == b"late"


def test_a_save_that_was_cut_off_does_not_count(
    s3: S3Client, checkpoint: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.save(b"whole", 50, 0.7)

    class Killed(BaseException):
        pass

    def killed(_seconds: object) -> None:
        raise Killed

    # The manifest is the second object: a machine that is gone before it leaves the first.
    monkeypatch.setattr(checkpoint.json, "dumps", killed)
    with pytest.raises(Killed):
        checkpoint.save(b"cut off", 100, 0.6)

    assert newest(s3) == f"{ATTEMPT_URI}step-0000050/"


def test_the_first_attempt_has_nothing_to_load(checkpoint: ModuleType) -> None:
    assert checkpoint.load() is None


def test_a_damaged_state_is_an_error_rather_than_a_new_beginning(
    s3: S3Client, checkpoint: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.save(b"state", 50, 0.7)
    s3.put_object(Bucket="relaunch-checkpoints", Key="pytorch/job-1/attempt-2/step-0000050/state.pt", Body=b"stat3")
    monkeypatch.setenv("RELAUNCH_RESUME_URI", f"{ATTEMPT_URI}step-0000050/")

    with pytest.raises(ValueError, match=r"state\.pt is not what its manifest says"):
        checkpoint.load()


def test_each_function_is_short_enough_to_copy() -> None:
    functions = FILE.read_text(encoding="utf-8").split("\ndef ")[1:]

    assert len(functions) == 2
    assert all(
        len([line for line in each.splitlines()[1:] if line.strip() and '"""' not in line]) <= 12 for each in functions
    )
