"""A machine for user data and the watchdog: a folder for /, and programs that write down how they were called."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fakes.loopback import LoopbackHandler, serve_on_loopback

# `.answers` has what a program prints, and `.status` its exit status. What it was called with goes into `calls`.
_PROGRAM = """\
#!/bin/bash
echo "${0##*/} $*" >>"@folder@/calls"
[[ -e "$0.hook" ]] && source "$0.hook"
[[ -e "$0.answers" ]] && cat "$0.answers"
exit "$(cat "$0.status" 2>/dev/null || echo 0)"
"""
PROGRAMS = ("systemctl", "docker", "dnf", "nvidia-smi", "sleep", "mkfs.xfs", "mount", "umount", "df")


class MachineHost:
    """The files of a machine under `root`, and the programs in its path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.programs = folder / "programs"
        for part in (self.root / "proc", self.root / "dev", self.programs):
            part.mkdir(parents=True)
        for name in PROGRAMS:
            self.install(name)
        self.boot_for(0.0)

    def install(self, name: str) -> None:
        """Put a program into the path."""
        program = self.programs / name
        program.write_text(_PROGRAM.replace("@folder@", str(self.folder)))
        program.chmod(0o755)

    def let(self, name: str, answers: str = "", status: int = 0, hook: str = "") -> None:
        """Let a program print something, end with a status, and run a piece of shell."""
        for suffix, text in (("answers", answers), ("status", str(status)), ("hook", hook)):
            (self.programs / f"{name}.{suffix}").write_text(text)

    def boot_for(self, uptime: float) -> None:
        """Let so many seconds have gone by since the boot."""
        (self.root / "proc" / "uptime").write_text(f"{uptime:.2f} {4 * uptime:.2f}\n")

    def add_device(self, name: str) -> None:
        (self.root / "dev" / name).touch()

    @property
    def calls(self) -> list[str]:
        """Return how programs were called, in order."""
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def power_offs(self) -> list[str]:
        return [call for call in self.calls if call.startswith("systemctl ") and " poweroff" in call]

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the environment of what runs on the machine."""
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        return {"PATH": path, "RELAUNCH_ROOT": str(self.root), "LC_ALL": "C", **variables}

    def run(self, *command: str | Path, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a command on the machine."""
        return subprocess.run(
            [str(part) for part in command],
            env=self.environment(**variables),
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


class Agent:
    """The introspection endpoint of the ECS agent; `answers` has the object, or the text, of each path."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: dict[str, Any] = {}

    def register(self, cluster: str = "training") -> None:
        """Let the agent be registered, without a task."""
        arn = f"arn:aws:ecs:us-east-1:123456789012:container-instance/{cluster}/0f9d"
        self.answers["/v1/metadata"] = {"Cluster": cluster, "ContainerInstanceArn": arn, "Version": "1.105.1"}
        self.answers.setdefault("/v1/tasks", {"Tasks": []})

    def run_tasks(self, *statuses: Mapping[str, str]) -> None:
        """Let the agent have tasks with these statuses."""
        tasks = [
            {"Arn": f"arn:aws:ecs:us-east-1:123456789012:task/training/{number}", "Containers": [], **each}
            for number, each in enumerate(statuses)
        ]
        self.answers["/v1/tasks"] = {"Tasks": tasks}


@contextmanager
def ecs_agent() -> Iterator[Agent]:
    """Serve an introspection endpoint on loopback; paths without an answer are not found."""

    class Handler(LoopbackHandler):
        def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
            answer = agent.answers.get(self.path)
            text = answer if isinstance(answer, str) else json.dumps(answer)
            self.respond(404 if answer is None else 200, text.encode())

    with serve_on_loopback(Handler) as url:
        agent = Agent(url)
        yield agent


@contextmanager
def refusing_address() -> Iterator[str]:
    """Yield a URL on loopback that refuses connections, as long as the context lasts."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


class Metadata:
    """The instance metadata service: IMDSv2 with the tags of the instance, or without any."""

    TOKEN = "a-token"

    def __init__(self, url: str) -> None:
        self.url = url
        self.tags: dict[str, str] | None = {}
        self.errors = 0
        """How many requests are answered 503 before one is answered."""


@contextmanager
def instance_metadata() -> Iterator[Metadata]:
    """Serve instance metadata on loopback ("Use instance metadata", Amazon EC2 User Guide)."""

    class Handler(LoopbackHandler):
        def is_down(self) -> bool:
            service.errors -= 1
            return service.errors >= 0

        def do_PUT(self) -> None:  # noqa: N802 - as http.server calls it
            self.read_body()
            if self.is_down():
                self.respond(503, b"")
            elif self.path == "/latest/api/token" and self.headers.get("X-aws-ec2-metadata-token-ttl-seconds"):
                self.respond(200, Metadata.TOKEN.encode())
            else:
                self.respond(400, b"")

        def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
            if self.headers.get("X-aws-ec2-metadata-token") != Metadata.TOKEN:
                self.respond(401, b"")
                return
            value = (service.tags or {}).get(self.path.removeprefix("/latest/meta-data/tags/instance/"))
            self.respond(200 if value is not None else 404, (value or "not found").encode())

    with serve_on_loopback(Handler) as url:
        service = Metadata(url)
        yield service
