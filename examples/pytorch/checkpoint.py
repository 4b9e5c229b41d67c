"""Relaunch's checkpoint contract for any framework: two functions to copy. Needs boto3."""

import hashlib
import json
import os
from datetime import UTC, datetime

import boto3


def save(body: bytes, step: int, loss: float) -> None:
    """Save a state: first the object, last the manifest, without which it does not count."""
    bucket, _, prefix = os.environ["RELAUNCH_CHECKPOINT_URI"].removeprefix("s3://").partition("/")
    folder = f"{prefix}step-{step:07d}/"
    now = datetime.now(UTC).isoformat()
    described = {"key": "state.pt", "size": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    job = {"job_id": os.environ["RELAUNCH_JOB_ID"], "attempt": int(os.environ["RELAUNCH_ATTEMPT"])}
    manifest = {"format": 1, **job, "step": step, "objects": [described], "loss": loss, "saved_at": now}
    s3 = boto3.client("s3")
    s3.put_object(Bucket=bucket, Key=folder + "state.pt", Body=body)
    s3.put_object(Bucket=bucket, Key=folder + "manifest.json", Body=json.dumps(manifest).encode())


def load() -> bytes | None:
    """Return the newest state of the job, None for its first attempt; a state that is damaged is an error."""
    if "RELAUNCH_RESUME_URI" not in os.environ:
        return None
    bucket, _, prefix = os.environ["RELAUNCH_RESUME_URI"].rstrip("/").removeprefix("s3://").partition("/")
    s3 = boto3.client("s3")
    manifest = json.load(s3.get_object(Bucket=bucket, Key=f"{prefix}/manifest.json")["Body"])
    (described,) = manifest["objects"]
    body: bytes = s3.get_object(Bucket=bucket, Key=f"{prefix}/{described['key']}")["Body"].read()
    if hashlib.sha256(body).hexdigest() != described["sha256"]:
        raise ValueError(f"{prefix}/{described['key']} is not what its manifest says")
    return body
