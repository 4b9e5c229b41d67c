"""Runs the steps of action.yml as a runner of GitHub Actions does, and the OIDC provider and the STS that they call.

Sources: "Metadata syntax for GitHub Actions" and "Workflow commands for GitHub Actions", GitHub Docs; ScriptHandler.cs
of actions/runner.
"""

import base64
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from fakes.repository import REPOSITORY
from relaunch_local.attack.requests import Call
from relaunch_local.stack.emulator import Emulator

ISSUER = "token.actions.githubusercontent.com"
SUBJECT = "repo:acme@1234/vision@5678:ref:refs/heads/main"
BEARER = "token-of-the-runner"
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_FILES = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE")
_BASH = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail")


@dataclass
class StepResult:
    """What a use of the action left: outputs by the names of action.yml, the log, and the files that it wrote."""

    exit_code: int
    log: str
    outputs: dict[str, str]
    files: dict[str, str]

    @property
    def errors(self) -> list[str]:
        """Return the annotations of errors."""
        return [line for line in self.log.splitlines() if line.startswith("::error")]


@dataclass
class GithubRunner:
    """A runner with a folder of its own; `services_url` is where its OIDC provider and STS are."""

    folder: Path
    services_url: str
    number: int = field(default=0, init=False)

    def use(
        self, inputs: Mapping[str, str], attempt: int = 1, cancel_when: Callable[[str], bool] | None = None
    ) -> StepResult:
        """Use the action with these inputs; cancel the workflow once `cancel_when` says so of a line of its log."""
        action = yaml.safe_load((REPOSITORY / "action.yml").read_text())
        unknown = set(inputs) - set(action["inputs"])
        assert not unknown, f"the runner warns of unexpected inputs: {unknown}"
        given = {name: inputs.get(name, each.get("default", "")) for name, each in action["inputs"].items()}
        steps: dict[str, dict[str, str]] = {}
        assert action["runs"]["using"] == "composite"
        (step,) = action["runs"]["steps"]
        assert step["shell"] == "bash"
        result = self._run_step(step, given, attempt, cancel_when)
        steps[step["id"]] = result.outputs
        result.outputs = {name: evaluate(each["value"], given, steps) for name, each in action["outputs"].items()}
        return result

    def _run_step(
        self, step: Mapping[str, Any], given: Mapping[str, str], attempt: int, cancel_when: Callable[[str], bool] | None
    ) -> StepResult:
        self.number += 1
        folder = self.folder / str(self.number)
        workspace = make_workspace(folder)
        for name in _FILES:
            (folder / name).touch()
        script = folder / "script.sh"
        script.write_text(step["run"])
        environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(folder),
            # A workflow may set it for steps of its own.
            "PYTHONPATH": str(workspace),
            **{name: str(folder / name) for name in _FILES},
            **self._variables(attempt),
            **{name: evaluate(value, given, {}) for name, value in step["env"].items()},
        }
        # The runner reads both streams for commands.
        process = subprocess.Popen(
            [*_BASH, script],
            cwd=workspace,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        log = self._read(process, cancel_when)
        files = {name: (folder / name).read_text() for name in _FILES}
        return StepResult(process.wait(), log, read_outputs(files["GITHUB_OUTPUT"]), files)

    def _read(self, process: subprocess.Popen[str], cancel_when: Callable[[str], bool] | None) -> str:
        log = ""
        assert process.stdout is not None
        for line in process.stdout:
            log += line
            if cancel_when is not None and cancel_when(line):
                cancel_when = None
                # The process that the runner started, not its children.
                process.send_signal(signal.SIGINT)
        process.stdout.close()
        return log

    def _variables(self, attempt: int) -> dict[str, str]:
        return {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(REPOSITORY),
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_JOB": "train",
            "GITHUB_REPOSITORY": "acme/vision",
            "GITHUB_RUN_ATTEMPT": str(attempt),
            "GITHUB_RUN_ID": "1658821493",
            "GITHUB_SERVER_URL": "https://github.com",
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.services_url}/token?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": BEARER,
            "AWS_ENDPOINT_URL_STS": self.services_url,
        }


def make_workspace(folder: Path) -> Path:
    """Return a checkout whose modules have the names of those of the standard library and of the action."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    for name in ("json", "urllib", "hmac", "relaunch_action"):
        (workspace / f"{name}.py").write_text("raise SystemExit('a module of the workspace was imported')\n")
    return workspace


def evaluate(text: str, inputs: Mapping[str, str], steps: Mapping[str, Mapping[str, str]]) -> str:
    """Return a text with its expressions replaced."""

    def replace(found: re.Match[str]) -> str:
        if found[1] == "toJSON(inputs)":
            return json.dumps(inputs, indent=2)
        place, step, what, name = found[1].split(".")
        assert (place, what) == ("steps", "outputs")
        return steps[step].get(name, "")

    return _EXPRESSION.sub(replace, text)


def read_outputs(text: str) -> dict[str, str]:
    """Return the outputs in a file, the last of each name; a file that the runner would refuse is an error."""
    outputs, lines = dict[str, str](), iter(text.splitlines())
    for line in lines:
        name, delimiter = line.split("<<", 1)
        value = []
        while (each := next(lines)) != delimiter:
            value.append(each)
        outputs[name] = "\n".join(value)
    return outputs


@contextmanager
def running_services(emulator: Emulator, subject: str = SUBJECT) -> Iterator[str]:
    """Run an OIDC provider that issues tokens for a subject, and STS; return their URL.

    STS is the emulator's, which compares the claims with the role's trust policy. Its guard takes signed requests only,
    and this one has no signature: it is signed on the way.
    """

    class Services(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.headers["authorization"] == f"bearer {BEARER}"
            assert self.path == "/token?api-version=2.0&audience=sts.amazonaws.com"
            self._answer(200, json.dumps({"count": 1, "value": make_token(subject)}))

        def do_POST(self) -> None:
            assert self.headers["authorization"] is None
            body = self.rfile.read(int(self.headers["content-length"]))
            call = Call(f"{emulator.endpoint_url}/", "POST", body, {"Content-Type": self.headers["content-type"]})
            answer = call.sign(emulator.root, "sts").send()
            self._answer(answer.status, answer.body)

        def _answer(self, status: int, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Services) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def make_token(subject: str) -> str:
    """Return a token of GitHub, without a signature: the emulator has no keys of GitHub."""
    claims = {"iss": f"https://{ISSUER}", "aud": "sts.amazonaws.com", "sub": subject}
    header, payload = ({"alg": "RS256", "typ": "JWT"}, claims)
    parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in (header, payload)]
    return ".".join([*parts, "c2lnbmF0dXJl"])


def create_role(emulator: Emulator, function_arn: str) -> str:
    """Create the role that docs/github-action.md describes; return its ARN."""
    iam = emulator.client("iam")
    page = (REPOSITORY / "docs" / "github-action.md").read_text(encoding="utf-8")
    trust, permissions = (
        json.loads(text) for text in re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    )
    for statement in trust["Statement"]:
        assert statement["Principal"]["Federated"].endswith(f":oidc-provider/{ISSUER}")
    for statement in permissions["Statement"]:
        statement["Resource"] = function_arn
    iam.create_open_id_connect_provider(Url=f"https://{ISSUER}", ClientIDList=["sts.amazonaws.com"])
    role = iam.create_role(RoleName="relaunch-vision", AssumeRolePolicyDocument=json.dumps(trust))["Role"]
    iam.put_role_policy(RoleName="relaunch-vision", PolicyName="submit", PolicyDocument=json.dumps(permissions))
    return str(role["Arn"])
