"""Fixtures: a job with its checkpoints in a folder, and one with them in an S3 on loopback."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import make_server

from functional.examples.attempts import PATIENCE_SECONDS, Job
from functional.examples.killing_s3 import KillingS3, S3World
from functional.examples.saving import Attempt
from relaunch_training import Checkpoints, s3_client


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(f"file://{tmp_path}/job-1/")
    yield job
    job.close()


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    def attempt(number: int = 1, **options: Any) -> Checkpoints:
        return Checkpoints(f"file://{tmp_path}/job-1/attempt-{number}", attempt=number, **options)

    return attempt


@pytest.fixture(scope="session")
def s3_server() -> Iterator[tuple[KillingS3, str]]:
    application = KillingS3()
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield application, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(PATIENCE_SECONDS)
    server.server_close()


@pytest.fixture
def s3_world(s3_server: tuple[KillingS3, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[S3World]:
    server, url = s3_server
    environment = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "no_proxy": "*",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    s3_client.cache_clear()
    client = boto3.client("s3")
    client.create_bucket(Bucket="checkpoints", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    job = Job("s3://checkpoints/demo/job-1/", environment=environment)
    yield S3World(job, server, client)
    job.close()
    for found in client.list_objects_v2(Bucket="checkpoints").get("Contents", []):
        client.delete_object(Bucket="checkpoints", Key=found["Key"])
    client.delete_bucket(Bucket="checkpoints")
    s3_client.cache_clear()
