"""The time of github_webhook from a fresh process to the response to its first signed event.

The secret is fetched and the message queued over TLS, from a server on loopback. Compared with the same function
written with boto3, and a bare interpreter that imports json, hmac, hashlib and http.client and creates a TLS context.
Cases are interleaved, so that a busy machine slows all of them. Code is compiled as by `make build`, and the CA bundle
has botocore's certificates.
"""

import compileall
import py_compile
import shutil
import sysconfig
import tempfile
from pathlib import Path

from benchmarks.certificates import server_context, write_certificate
from benchmarks.fresh_process import Sample, aws_environment, medians
from benchmarks.fresh_process import measure as measure_process
from benchmarks.session import Session, rotated
from benchmarks.tables import Table
from fakes.aws_endpoint import serve_aws
from fakes.webhook import EVENTS, SECRET
from relaunch_local.repository import REPOSITORY

SAMPLE = EVENTS / "function-url.github-push.json"
GOAL_MS = 100
BARE_CASE = "bare interpreter"
OURS = "github_webhook"
PEER = "the same with boto3"

HANDLE = """
import json
event = json.load(open({sample!r}))
from {module} import handle
assert handle(event, None)["statusCode"] == 202
"""
BARE = """
import json, hmac, hashlib, http.client, ssl, os
ssl.create_default_context(cafile=os.environ["AWS_CA_BUNDLE"])
"""
WITH_BOTO3 = '''
"""The same function, with boto3."""
import os, time
import boto3
from relaunch.adapters.github.webhook_request import Request, receive
from relaunch.adapters.github.signature import SecretRing

_sqs = boto3.client("sqs")
_secrets_manager = boto3.client("secretsmanager")


def _read_secret(stage):
    answer = _secrets_manager.get_secret_value(SecretId=os.environ["RELAUNCH_WEBHOOK_SECRET_ARN"], VersionStage=stage)
    return answer["SecretString"], answer["CreatedDate"].timestamp()


def _enqueue(message):
    return _sqs.send_message(QueueUrl=os.environ["RELAUNCH_INTAKE_QUEUE_URL"], MessageBody=message)


_secrets = SecretRing(_read_secret, time.time, 43_200)


def handle(event, _context):
    return receive(Request(event), _secrets, _enqueue, "2026-11-03T12:30:42Z").to_response()
'''


def build(folder: Path) -> Path:
    """Copy and compile the code as `make build` does; return the folder to import from."""
    target = folder / "task"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "layers/relaunch/relaunch", target / "relaunch", ignore=ignored)
    shutil.copytree(REPOSITORY / "functions/github_webhook", target / "github_webhook", ignore=ignored)
    (target / "webhook_with_boto3.py").write_text(WITH_BOTO3)
    compileall.compile_dir(target, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    return target


def make_environment(task: Path, bundle: Path, url: str) -> dict[str, str]:
    """Return the environment of the function."""
    return {
        **aws_environment(url, str(bundle), str(task), sysconfig.get_path("purelib")),
        "RELAUNCH_INTAKE_QUEUE_URL": f"{url}/111122223333/intake",
        "RELAUNCH_WEBHOOK_SECRET_ARN": "arn:aws:secretsmanager:us-east-1:111122223333:secret:hook-AbCdEf",
    }


def run_rounds(session: Session) -> dict[str, list[Sample]]:
    """Measure every case once per round."""
    cases = {
        BARE_CASE: BARE,
        OURS: HANDLE.format(sample=str(SAMPLE), module="github_webhook.handler"),
        PEER: HANDLE.format(sample=str(SAMPLE), module="webhook_with_boto3"),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        certificate, bundle = write_certificate(folder)
        task = build(folder)
        with serve_aws(server_context(certificate)) as aws:
            aws.secrets = {"AWSCURRENT": SECRET}
            environment = make_environment(task, bundle, aws.url)
            return session.collect(
                lambda number: {
                    case: measure_process(code, environment) for case, code in rotated([*cases.items()], number)
                }
            )


def measure(session: Session) -> list[Table]:
    """Measure all three cases."""
    samples = run_rounds(session)
    measured = {case: medians(each) for case, each in samples.items()}
    bare = measured[BARE_CASE].milliseconds
    peer = measured[PEER].milliseconds
    rows = [
        (case, ms, min(samples[case])[0], max(samples[case])[0], ms / bare, ms / peer, processor_ms, peak_mib)
        for case, (ms, processor_ms, peak_mib) in measured.items()
    ]
    reached = "reached" if measured[OURS].milliseconds <= GOAL_MS else "missed"
    return [
        Table(
            f"Fresh process to the first signed event's answer; medians of {len(samples[OURS])} interleaved rounds",
            ("case", "ms", "fastest", "slowest", "x bare", "x boto3", "CPU ms", "peak MiB"),
            rows,
            (f"Goal: {GOAL_MS} ms; {reached}. The bare interpreter imports what is needed and makes a TLS context.",),
        )
    ]
