"""The time of github_webhook from a fresh process to the response to its first signed event.

The secret is fetched and the message queued over TLS, from a server on loopback in another process. Compared with the
same function written with boto3, and a bare interpreter that imports json, hmac, hashlib and http.client and creates a
TLS context. Cases are interleaved, so that a busy machine slows all of them. Code is compiled as by `make build`, and
the CA bundle has botocore's certificates.
"""

import compileall
import hashlib
import http.server
import json
import py_compile
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.certificates import server_context, write_certificate
from benchmarks.fresh_process import Sample, aws_environment
from benchmarks.fresh_process import measure as measure_process
from benchmarks.session import Session, rotated
from benchmarks.tables import Table, median
from fakes.webhook import EVENTS, SECRET
from relaunch_local.repository import REPOSITORY

SAMPLE = EVENTS / "function-url.github-push.json"
GOAL_MS = 100
BARE_CASE, OURS, PEER = "bare interpreter", "github_webhook", "the same with boto3"

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
    return answer["SecretString"]


def _enqueue(message):
    return _sqs.send_message(QueueUrl=os.environ["RELAUNCH_INTAKE_QUEUE_URL"], MessageBody=message)


_secrets = SecretRing(_read_secret, time.time)


def handle(event, _context):
    return receive(Request(event), _secrets.has_signed, _enqueue, "2026-11-03T12:30:42Z").to_response()
'''


class AwsHandler(http.server.BaseHTTPRequestHandler):
    """Handles GetSecretValue and SendMessage."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise each response waits 40 ms for the client's acknowledgement

    def do_POST(self) -> None:
        """Handle a call."""
        parameters = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["X-Amz-Target"] == "AmazonSQS.SendMessage":
            digest = hashlib.md5(parameters["MessageBody"].encode(), usedforsecurity=False).hexdigest()
            answer = {"MessageId": "0f6c2a30", "MD5OfMessageBody": digest}
        else:
            answer = {"ARN": "arn", "Name": "hook", "SecretString": SECRET}
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def serve(certificate: Path) -> None:
    """Serve on an ephemeral port of loopback, and print the port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), AwsHandler)
    context = server_context(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def build(folder: Path) -> Path:
    """Copy and compile the code as `make build` does; return the folder to import from."""
    target = folder / "task"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "layers/relaunch/relaunch", target / "relaunch", ignore=ignored)
    shutil.copytree(REPOSITORY / "functions/github_webhook", target / "github_webhook", ignore=ignored)
    (target / "webhook_with_boto3.py").write_text(WITH_BOTO3)
    compileall.compile_dir(target, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    return target


@contextmanager
def run_server(certificate: Path) -> Iterator[int]:
    """Run the server in another process; yield its port."""
    command = [sys.executable, "-m", "benchmarks.webhook_cold_start", str(certificate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as server:
        try:
            assert server.stdout is not None  # noqa: S101 - for the type checker: it is a pipe
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def make_environment(task: Path, bundle: Path, port: int) -> dict[str, str]:
    """Return the environment of the function."""
    url = f"https://127.0.0.1:{port}"
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
    samples: dict[str, list[Sample]] = {name: [] for name in cases}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        certificate, bundle = write_certificate(folder)
        task = build(folder)
        with run_server(certificate) as port:
            environment = make_environment(task, bundle, port)
            for number, is_counted in enumerate(session.counted()):
                for case, code in rotated([*cases.items()], number):
                    sample = measure_process(code, environment)
                    if is_counted:
                        samples[case].append(sample)
    return samples


def measure(session: Session) -> list[Table]:
    """Measure all three cases."""
    samples = run_rounds(session)
    medians = {case: median(sample.milliseconds for sample in measured) for case, measured in samples.items()}
    rows = [
        (
            case,
            medians[case],
            min(sample.milliseconds for sample in measured),
            max(sample.milliseconds for sample in measured),
            medians[case] / medians[BARE_CASE],
            medians[case] / medians[PEER],
            median(sample.processor_milliseconds for sample in measured),
            median(sample.peak_mib for sample in measured),
        )
        for case, measured in samples.items()
    ]
    reached = "reached" if medians[OURS] <= GOAL_MS else "missed"
    return [
        Table(
            f"Fresh process to the first signed event's answer; medians of {len(samples[OURS])} interleaved rounds",
            ("case", "ms", "fastest", "slowest", "x bare", "x boto3", "CPU ms", "peak MiB"),
            rows,
            (f"Goal: {GOAL_MS} ms; {reached}. The bare interpreter imports what is needed and makes a TLS context.",),
        )
    ]


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
