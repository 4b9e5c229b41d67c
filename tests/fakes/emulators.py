"""MiniStack as it serves itself, without our guard: where attacks succeed, and what they send."""

import base64
import io
import json
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from relaunch_local.attack.requests import REGION, Call
from relaunch_local.request_guard.credentials import Credentials
from relaunch_local.stack.emulator import (
    ACCOUNT,
    EMULATOR_LOG,
    INTERPRETER,
    LOOPBACK,
    Emulator,
    emulator_environment,
    free_port,
    is_up,
)
from relaunch_local.stack.process_guard import start_guarded

KNOWN_TO_EVERYBODY: Final = Credentials("test", "test")
ROLE = "attacker"
TRUST = json.dumps(
    {"Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}]}
)
FUNCTIONS = "/2015-03-31/functions"


@contextmanager
def unguarded_emulator(folder: Path) -> Iterator[Emulator]:
    """Run MiniStack with its own server and its own root key, with policies enforced."""
    emulator = Emulator(f"http://{LOOPBACK}:{free_port()}", KNOWN_TO_EVERYBODY)
    folder.mkdir()
    work, log = folder / "emulator", folder / EMULATOR_LOG
    work.mkdir()
    environment = emulator_environment(emulator, work, {})
    process = start_guarded([INTERPRETER, "-m", "ministack"], environment=environment, folder=folder, log=log)
    try:
        assert is_up(emulator, process, log), log.read_text()
        yield emulator
    finally:
        process.stop()


def create_role(emulator: Emulator) -> None:
    """Create the role of the functions, which may do nothing, unless there is one."""
    client = emulator.client("iam")
    with suppress(client.exceptions.EntityAlreadyExistsException):
        client.create_role(RoleName=ROLE, AssumeRolePolicyDocument=TRUST)


def function_with(name: str, marker: Path, role: str = ROLE) -> dict[str, object]:
    """Return the request that creates a function, which creates the file `marker` when it is invoked."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        code = (
            f"def handler(event, context):\n    open({str(marker)!r}, 'w').close()\n    return {{'statusCode': 200}}\n"
        )
        archive.writestr("code.py", code)
    return {
        "FunctionName": name,
        "Runtime": f"python{sys.version_info.major}.{sys.version_info.minor}",
        "Role": f"arn:aws:iam::{ACCOUNT}:role/{role}",
        "Handler": "code.handler",
        "Code": {"ZipFile": base64.b64encode(packed.getvalue()).decode()},
    }


def creating(emulator: Emulator, name: str, marker: Path, role: str = ROLE) -> Call:
    """Return the call that creates such a function."""
    return Call(f"{emulator.endpoint_url}{FUNCTIONS}", body=json.dumps(function_with(name, marker, role)).encode())


def invoking(emulator: Emulator, name: str) -> Call:
    """Return the call that invokes it."""
    return Call(f"{emulator.endpoint_url}{FUNCTIONS}/{name}/invocations", body=b"{}")


def presigned(call: Call, access_key: str) -> Call:
    """Return the call with credentials in its query, as a page can send them without being asked first."""
    query = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{access_key}/20260101/{REGION}/lambda/aws4_request",
        "X-Amz-Date": "20260101T000000Z",
        "X-Amz-Expires": "604800",
        "X-Amz-SignedHeaders": "host",
        "X-Amz-Signature": "0" * 64,
    }
    return replace(call, url=f"{call.url}{'&' if '?' in call.url else '?'}{urlencode(query)}")
