"""How long github_webhook takes from a fresh process to the answer of its first signed event.

The secret is fetched and the message queued over TLS, from a server on loopback in a process of its own. Beside it: the
same function written with boto3, and a bare interpreter that imports json, hmac, hashlib and http.client and makes a
TLS context. Rounds are interleaved, so that a busy machine is busy for all of them. Code is compiled as `make build`
does it, and the certificates to load are as many as in real life.

    .venv/bin/python benchmarks/webhook_cold_start.py --rounds 20
"""

import argparse
import compileall
import datetime
import hashlib
import http.server
import ipaddress
import json
import os
import py_compile
import resource
import shutil
import ssl
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import botocore
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "events" / "function-url.github-push.json"
SECRET = "It's a Secret to Everybody"  # noqa: S105 - GitHub's own example, with which the sample event is signed
GOAL_MS = 100

TAIL = """
print("answered", flush=True)
print(*[line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")])
"""
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
from relaunch.adapters.github.reception import Request, receive
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


class Sample(NamedTuple):
    """One fresh process: milliseconds to its answer, processor time to its end, and the most memory it had."""

    milliseconds: float
    processor_milliseconds: float
    peak_mib: float


class AwsHandler(http.server.BaseHTTPRequestHandler):
    """Answers GetSecretValue and SendMessage."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for the client's acknowledgement

    def do_POST(self) -> None:
        """Answer one call."""
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
        """Keep quiet."""


def serve(certificate: Path) -> None:
    """Serve on an ephemeral port of loopback, print the port, and end with the parent's pipe."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), AwsHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a self-signed certificate with its key, and a bundle of it among those that botocore trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "relaunch benchmark")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=12))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain, bundle = folder / "server.pem", folder / "bundle.pem"
    chain.write_bytes(private + public)
    bundle.write_bytes((Path(botocore.__file__).parent / "cacert.pem").read_bytes() + public)
    return chain, bundle


def build(folder: Path) -> Path:
    """Copy and compile the code as `make build` does; return the folder to import from."""
    target = folder / "task"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "layers/relaunch/relaunch", target / "relaunch", ignore=ignored)
    shutil.copytree(ROOT / "functions/github_webhook", target / "github_webhook", ignore=ignored)
    (target / "webhook_with_boto3.py").write_text(WITH_BOTO3)
    compileall.compile_dir(target, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    return target


@contextmanager
def run_server(certificate: Path) -> Iterator[int]:
    """Run the server in a process of its own; give its port."""
    command = [sys.executable, __file__, "--serve", str(certificate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None  # noqa: S101 - for the type checker: it is a pipe
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def measure(code: str, environment: dict[str, str]) -> Sample:
    """Run code in a fresh interpreter until it says that it has answered.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    # The interpreter without its virtual environment: Lambda has none either.
    interpreter = getattr(sys, "_base_executable", sys.executable)
    started, used = time.perf_counter(), measure_children()
    with subprocess.Popen(
        [interpreter, "-s", "-c", code + TAIL], env=environment, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None  # noqa: S101 - for the type checker: it is a pipe
        while (line := child.stdout.readline()) and line != "answered\n":
            pass
        milliseconds = (time.perf_counter() - started) * 1000
        rest = child.stdout.read()
    if child.returncode or not rest:
        raise subprocess.CalledProcessError(child.returncode, interpreter)
    return Sample(milliseconds, (measure_children() - used) * 1000, int(rest) / 1024)


def measure_children() -> float:
    """Return the seconds of processor time that ended child processes used."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def make_environment(task: Path, bundle: Path, port: int) -> dict[str, str]:
    """Return the environment of the function."""
    url = f"https://127.0.0.1:{port}"
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{task}{os.pathsep}{sysconfig.get_path('purelib')}",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "token",
        "AWS_CA_BUNDLE": str(bundle),
        "AWS_ENDPOINT_URL": url,
        "RELAUNCH_INTAKE_QUEUE_URL": f"{url}/111122223333/intake",
        "RELAUNCH_WEBHOOK_SECRET_ARN": "arn:aws:secretsmanager:us-east-1:111122223333:secret:hook-AbCdEf",
    }


def run_rounds(rounds: int) -> dict[str, list[Sample]]:
    """Measure every case once per round, after one round that is not counted."""
    cases = {
        "bare interpreter": BARE,
        "github_webhook": HANDLE.format(sample=str(SAMPLE), module="github_webhook.handler"),
        "the same with boto3": HANDLE.format(sample=str(SAMPLE), module="webhook_with_boto3"),
    }
    samples: dict[str, list[Sample]] = {name: [] for name in cases}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        certificate, bundle = write_certificate(folder)
        task = build(folder)
        with run_server(certificate) as port:
            environment = make_environment(task, bundle, port)
            for number in range(rounds + 1):
                for case, code in cases.items():
                    sample = measure(code, environment)
                    if number:
                        samples[case].append(sample)
    return samples


def report(samples: dict[str, list[Sample]]) -> None:
    """Print medians and ratios."""
    bare = statistics.median(sample.milliseconds for sample in samples["bare interpreter"])
    rounds = len(samples["bare interpreter"])
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"Fresh process to the answer of the first signed event, Python {version}, {rounds} interleaved rounds")
    print("(medians; a busy machine slows all of them: mind the ratio)")
    print(f"{'':22}{'ms':>8}{'fastest':>10}{'slowest':>10}{'x bare':>8}{'CPU ms':>8}{'peak MiB':>10}")
    for case, measured in samples.items():
        times = [sample.milliseconds for sample in measured]
        median = statistics.median(times)
        processor = statistics.median(sample.processor_milliseconds for sample in measured)
        peak = statistics.median(sample.peak_mib for sample in measured)
        spread = f"{min(times):10.1f}{max(times):10.1f}"
        print(f"{case:22}{median:8.1f}{spread}{median / bare:8.2f}{processor:8.1f}{peak:10.1f}")
    ours = statistics.median(sample.milliseconds for sample in samples["github_webhook"])
    print(f"goal: {GOAL_MS} ms; github_webhook: {ours:.1f} ms, {'reached' if ours <= GOAL_MS else 'missed'}")


def main() -> None:
    """Run the benchmark, or its server."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
    else:
        report(run_rounds(arguments.rounds))


if __name__ == "__main__":
    main()
