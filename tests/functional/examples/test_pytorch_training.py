"""The training of examples/pytorch on CPU: interrupted, it ends with the weights of one that was not."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from fakes.repository import REPOSITORY
from relaunch.adapters.aws.checkpoints import S3Checkpoints

pytestmark = [pytest.mark.pytorch]
EXAMPLES = REPOSITORY / "examples"
CHECKPOINTS = "s3://relaunch-checkpoints/pytorch/"


@dataclass
class Trainings:
    """Starts attempts of a job whose checkpoints are in a bucket on loopback."""

    endpoint: str
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        credentials = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(EXAMPLES),
            "AWS_ENDPOINT_URL": self.endpoint,
            **credentials,
        }

    def start(self, **contract: str) -> subprocess.Popen[str]:
        arguments = [sys.executable, "-m", "pytorch.train", "--epochs", "10"]
        return subprocess.Popen(
            arguments, cwd=self.folder, env=self.environment | contract, stdout=subprocess.PIPE, text=True
        )

    def attempt(self, number: int, resume: str | None = None) -> subprocess.Popen[str]:
        contract = {
            "RELAUNCH_JOB_ID": "job-1",
            "RELAUNCH_ATTEMPT": str(number),
            "RELAUNCH_CHECKPOINT_URI": f"{CHECKPOINTS}job-1/attempt-{number}/",
        }
        return self.start(**contract, **({"RELAUNCH_RESUME_URI": resume} if resume else {}))

    def newest(self) -> str | None:
        client = boto3.client(
            "s3", "us-east-1", endpoint_url=self.endpoint, aws_access_key_id="test", aws_secret_access_key="test"
        )
        return S3Checkpoints(client).newest_complete(CHECKPOINTS, "job-1")


@pytest.fixture(name="trainings")
def _trainings(tmp_path: Path) -> Iterator[Trainings]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        trainings = Trainings(f"http://{host}:{port}", tmp_path)
        boto3.client(
            "s3", "us-east-1", endpoint_url=trainings.endpoint, aws_access_key_id="test", aws_secret_access_key="test"
        ).create_bucket(Bucket="relaunch-checkpoints")
        yield trainings
    finally:
        server.stop()


def weights_of(output: str) -> str:
    (found,) = re.findall(r"finished with weights ([0-9a-f]{64})", output)
    return str(found)


def test_an_interrupted_training_ends_with_the_weights_of_one_that_was_not(trainings: Trainings) -> None:
    whole, _ = trainings.start().communicate(timeout=300)

    interrupted = trainings.attempt(1)
    assert interrupted.stdout is not None
    line = ""
    for line in interrupted.stdout:
        if line.startswith("relaunch: step=50 ") and "save_seconds" in line:
            interrupted.send_signal(signal.SIGTERM)
            break
    rest, _ = interrupted.communicate(timeout=300)
    resumed, _ = trainings.attempt(2, trainings.newest()).communicate(timeout=300)

    saved = re.findall(r"^relaunch: step=([0-9]+) .*save_seconds", line + rest, re.MULTILINE)[-1]
    assert interrupted.returncode == 0
    assert "finished" not in rest
    assert 50 <= int(saved) < 640
    assert resumed.startswith(f"resumed at step {saved}\n")
    assert weights_of(resumed) == weights_of(whole)
