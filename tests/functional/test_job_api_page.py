"""What docs/job-api.md shows works, and is answered as it says."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jsonschema
import pytest
import yaml

from fakes.busy_stack import JOB_ID, BusyStack
from fakes.repository import REPOSITORY
from fakes.webhook import load_event
from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.messages.job_api import published_schema
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.callers import is_listed

PAGE = (REPOSITORY / "docs" / "job-api.md").read_text(encoding="utf-8")
CALLER = "arn:aws:sts::111122223333:assumed-role/ci-vision/run-1"
REQUEST, ANSWER = ({**published_schema(), "$ref": f"#/$defs/{name}"} for name in ("Request", "Answer"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


@contextmanager
def function_url(stack: BusyStack, requests: list[dict[str, Any]]) -> Iterator[str]:
    """Serve job_api at a URL on loopback; what is asked for a second time has ended."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert "AWS4-HMAC-SHA256" in self.headers["Authorization"]
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            requests.append(json.loads(body))
            answer = stack.functions.invoke("job_api", event(body))
            if requests[-1]["action"] == "show":
                stack.functions.invoke("job_api", event(json.dumps({**requests[-1], "action": "cancel"})))
            self.send_response(answer["statusCode"])
            self.end_headers()
            self.wfile.write(answer["body"].encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def event(body: str) -> dict[str, Any]:
    sample = load_event("function-url.job-api")
    sample["requestContext"]["authorizer"] = {"iam": {"userArn": CALLER}}
    return {**sample, "body": body}


def run_script(script: str, url: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "JOB_API_URL": url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_the_script_submits_a_job_and_waits_for_its_end() -> None:
    (script,) = blocks("python")
    requests: list[dict[str, Any]] = []

    with function_url(BusyStack(), requests) as url:
        done = run_script(script.replace("time.sleep(30)", "time.sleep(0)"), url)

    assert done.stderr == ""
    assert done.returncode == 1
    assert re.match(r"resnet-\w+ CANCELLED ", done.stdout)
    assert [each["action"] for each in requests] == ["submit", "show", "show"]
    assert done.stdout.startswith(requests[1]["job_id"])


def test_the_script_says_what_was_refused() -> None:
    (script,) = blocks("python")

    with function_url(BusyStack(), []) as url:
        done = run_script(script.replace('"resnet"', '"resnt"'), url)

    assert done.returncode == 1
    assert done.stderr.startswith("job_api answered 404: ")
    assert "UnknownDefinition" in done.stderr


def requests_of_page() -> list[dict[str, Any]]:
    shell = [found for block in blocks("console") for found in re.findall(r"(?:-d|--payload) '(\{.*?\})'", block)]
    _definition, workflow = (yaml.safe_load(block) for block in blocks("yaml"))
    steps = workflow["jobs"]["train"]["steps"]
    return [json.loads(text) for text in [*shell, *(step["env"]["REQUEST"] for step in steps if "env" in step)]]


def test_every_request_keeps_the_schema() -> None:
    found = requests_of_page()

    assert len(found) == 3
    for request in found:
        # A runner replaces expressions.
        plain = json.loads(json.dumps(request).replace("${{ github.run_id }}", "42"))
        jsonschema.Draft202012Validator(REQUEST).validate(plain)


@pytest.fixture(name="shown")
def _shown() -> dict[str, Any]:
    (block,) = (json.loads(each) for each in blocks("json") if each.startswith('{\n  "job"'))
    return block


def test_the_answer_has_the_keys_of_a_real_one_in_its_order(shown: dict[str, Any]) -> None:
    answer = BusyStack().functions.invoke("job_api", {"action": "show", "job_id": JOB_ID})

    jsonschema.Draft202012Validator(ANSWER, format_checker=jsonschema.FormatChecker()).validate(shown)
    assert list(shown["job"]) == list(answer["job"])
    known = ("job_id", "definition", "state", "is_final", "accepted_at", "attempt", "task_arn", "interruptions")
    assert {key: shown["job"][key] for key in known} == {key: answer["job"][key] for key in known}


def test_the_callers_of_a_definition_are_callers() -> None:
    definition, _workflow = blocks("yaml")
    rest = "    task_definition: trainer\n    accelerator: {gpu: {count: 1}}\n"

    (found,) = parse_definitions(definition + rest, "job-api.md", load_catalogue())

    for caller in ("sts::111122223333:assumed-role/submit-vision", "iam::111122223333:user/ada"):
        assert is_listed(f"arn:aws:{caller}", found.callers)
    assert is_listed("arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Trainers_0123456789abcdef", found.callers)
    assert is_listed("invoke", found.callers)
    assert not is_listed("arn:aws:sts::111122223333:assumed-role/ci-vision", found.callers)
