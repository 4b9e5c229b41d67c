"""A page in a real browser runs code through servers without the guard, and nothing through those with it."""

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fakes.emulators import TRUST, creating, function_with, unguarded_emulator
from fakes.loopback import LoopbackHandler, serve_on_loopback
from fakes.unguarded import UnguardedRequests
from relaunch_local.ecs import Clock, EcsServer, EcsSimulator, ScriptedProcesses, SimulatorSettings
from relaunch_local.request_guard.credentials import random_root_credentials
from relaunch_local.request_guard.guard import RequestGuard
from relaunch_local.stack.emulator import Emulator, running_emulator

pytestmark = pytest.mark.browser

PAGE = Path(__file__).with_name("attacks.html")
REBOUND = "attacker.example"
TECHNIQUES = ("simple", "preflighted", "form", "rebound")
# Nothing that waits for a browser on a busy machine gives up within minutes.
PATIENCE_SECONDS = 300.0
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)


@dataclass
class Servers:
    """An emulator and a simulator, both with the guard or both without, and what happens when they run code."""

    emulator: Emulator
    server: EcsServer
    folder: Path
    webhook: str = ""

    def marker(self, name: str) -> Path:
        """Return the file that the function of this name creates."""
        return self.folder / f"{name}-was-run"

    def add_webhook(self) -> None:
        """Create a function that may be invoked by its URL without a signature, as the webhook may."""
        client: Any = self.emulator.client("lambda")
        self.emulator.client("iam").create_role(RoleName="owner", AssumeRolePolicyDocument=TRUST)
        request = creating(self.emulator, "webhook", self.marker("webhook"), role="owner").sign(self.emulator.root)
        assert request.send().status == 201
        url = client.create_function_url_config(FunctionName="webhook", AuthType="NONE")["FunctionUrl"]
        allowed = {"Action": "lambda:InvokeFunctionUrl", "Principal": "*", "FunctionUrlAuthType": "NONE"}
        client.add_permission(FunctionName="webhook", StatementId="public", **allowed)
        self.webhook = f"{self.emulator.endpoint_url}/_aws/lambda-url/{url.split('//')[1].split('.', 1)[0]}/"

    def targets(self) -> dict[str, object]:
        """Return what the page is told."""
        port = self.emulator.endpoint_url.rsplit(":", 1)[1]
        return {
            "emulator": self.emulator.endpoint_url,
            "rebound": f"http://{REBOUND}:{port}",
            "simulator": self.server.url,
            "webhook": self.webhook,
            "role": {"name": "attacker", "trust": TRUST},
            "requests": {name: function_with(name, self.marker(name)) for name in TECHNIQUES},
        }

    def happened(self) -> set[str]:
        """Return everything that has happened."""
        roles = self.emulator.client("iam").list_roles()["Roles"]
        made = {each["FunctionName"] for each in self.emulator.client("lambda").list_functions()["Functions"]}
        simulator = self.server.simulator
        return {
            *(f"role {each['RoleName']}" for each in roles if each["RoleName"] != "owner"),
            *(f"{name} created" for name in made - {"webhook"}),
            *(f"{name} run" for name in (*TECHNIQUES, "webhook") if self.marker(name).exists()),
            *(["throttling disabled"] if not simulator.limits.enabled else []),
            *(f"{each.service} {each.action}" for each in simulator.requests),
        }


EVERYTHING = {
    "role attacker",
    *(f"{name} {what}" for name in TECHNIQUES for what in ("created", "run")),
    *("webhook run", "throttling disabled", "ec2 DescribeInstances"),
}


@contextmanager
def serving(folder: Path, *, is_guarded: bool) -> Iterator[Servers]:
    root, clock = random_root_credentials(), Clock()
    guard = (RequestGuard if is_guarded else UnguardedRequests)({root.access_key_id: root.secret_access_key}.get)
    simulator = EcsSimulator(clock, ScriptedProcesses(clock, lambda _: None), SimulatorSettings(instance_types={}))
    with ExitStack() as stack:
        server = stack.enter_context(closing(EcsServer(simulator, guard)))
        server.start()
        work = folder / "emulator"
        work.mkdir()
        started = running_emulator(work, {}, root) if is_guarded else unguarded_emulator(work / "own")
        servers = Servers(stack.enter_context(started), server, folder)
        servers.add_webhook()
        yield servers


@contextmanager
def browsing(url: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Open a page in Chromium with a new profile."""
    browser = shutil.which("chromium")
    if browser is None:
        pytest.fail("Chromium is missing: apt-get install --no-install-recommends chromium")
    profile = folder / "profile"
    profile.mkdir()
    command = [browser, *FLAGS, f"--user-data-dir={profile}", f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1", url]
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            env={"PATH": os.environ["PATH"], "HOME": str(profile), "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def visit(servers: Servers) -> dict[str, str]:
    """Open the page that attacks these servers; return what it says of each attack."""
    reports: queue.Queue[dict[str, str]] = queue.Queue()

    class Page(LoopbackHandler):
        def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
            if self.path == "/targets":
                self.respond(200, json.dumps(servers.targets()).encode(), [("Content-Type", "application/json")])
            elif self.path == "/":
                self.respond(200, PAGE.read_bytes(), [("Content-Type", "text/html")])
            else:
                self.respond(404, b"")

        def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
            reports.put(json.loads(self.read_body()))
            self.respond(204, b"")

    with serve_on_loopback(Page) as url, browsing(url, servers.folder) as browser:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while browser.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(queue.Empty):
                return reports.get(timeout=0.2)
    pytest.fail(f"the page has not reported:\n{(servers.folder / 'browser.log').read_text(errors='replace')[-4000:]}")


def test_without_the_guard_a_page_runs_code(tmp_path: Path) -> None:
    with serving(tmp_path, is_guarded=False) as servers:
        outcomes = visit(servers)

        assert set(outcomes.values()) == {"sent"}
        assert servers.happened() == EVERYTHING


def test_with_the_guard_a_page_does_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, is_guarded=True) as servers:
        outcomes = visit(servers)

        # The answer of a refused preflight reaches no page either.
        assert outcomes.pop("preflighted requests").startswith("TypeError: Failed to fetch")
        assert set(outcomes.values()) == {"sent"}
        assert servers.happened() == set()
