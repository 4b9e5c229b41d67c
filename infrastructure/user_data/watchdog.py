#!/usr/bin/python3
"""Powers off a machine that nobody uses, also when Relaunch is gone: its launch template makes that a termination.

relaunch-watchdog.timer runs it every minute. It reads what the ECS agent tells on loopback ("Amazon ECS container agent
introspection", ECS Developer Guide). All its times are seconds of /proc/uptime, so that no change of the clock ends a
machine. The `python3` of Amazon Linux 2023 is Python 3.9.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.get("RELAUNCH_ROOT", "/"))
STATE = ROOT / "run" / "relaunch" / "watchdog.json"
AGENT = os.environ.get("RELAUNCH_AGENT", "http://127.0.0.1:51678")
TASK_LABEL = "com.amazonaws.ecs.task-arn"
"""The Docker label of the containers of tasks."""
LOST_SECONDS = 120.0
"""How long an accelerator must be missing: a driver that is loaded again is away for seconds."""


@dataclass(frozen=True)
class Limits:
    """The seconds without a task, and from the boot to the registration, after which a machine is powered off."""

    idle: float
    registration: float


@dataclass(frozen=True)
class Seen:
    """What is seen in one run; an agent that does not answer is not registered."""

    uptime: float
    is_registered: bool
    has_task: bool
    has_accelerator: bool


@dataclass(frozen=True)
class State:
    """What is kept between the runs of one boot: uptimes, None for what has not been seen.

    `registered` is the first time at which the agent was registered, `used` the last at which there was a task. The
    accelerator is missing since `lost`.
    """

    registered: float | None = None
    used: float | None = None
    lost: float | None = None


def judge(state: State, seen: Seen, limits: Limits) -> tuple[State, str]:
    """Return the new state, and why the machine is to be powered off; empty if it is not.

    A machine with a task never is. An agent that was registered and does not answer, as while it restarts, is no reason
    by itself; the time without a task goes on.
    """
    now = seen.uptime
    missing_since = now if state.lost is None else state.lost
    state = replace(
        state,
        registered=now if state.registered is None and seen.is_registered else state.registered,
        used=now if seen.has_task else state.used,
        lost=None if seen.has_accelerator else missing_since,
    )
    if seen.has_task:
        return state, ""
    if state.registered is None:
        return state, f"not registered {now:.0f} s after the boot" if now >= limits.registration else ""
    if state.lost is not None and now >= limits.registration and now - state.lost >= LOST_SECONDS:
        return state, f"no accelerator {now:.0f} s after the boot"
    idle = now - max(state.registered, state.used or 0.0)
    return state, f"no task for {idle:.0f} s" if idle >= limits.idle else ""


def is_live(task: dict[str, Any]) -> bool:
    """Return whether a task of the introspection endpoint, which keeps stopped ones for hours, runs or is to run.

    One that is stopping has the time of an idle machine left, which is longer than any stop time-out.
    """
    return "STOPPED" not in (task.get("KnownStatus"), task.get("DesiredStatus"))


def ask_agent(path: str) -> dict[str, Any] | None:
    """Return the object that the agent answers, None if it does not: it listens only once it is registered."""
    # No proxy of the environment is between the machine and itself.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{AGENT}{path}", timeout=5) as response:
            answer = json.load(response)
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


def output_of(*command: str) -> str:
    """Return the standard output of a command; empty if it fails or takes longer than half a minute."""
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
    except OSError:
        return ""
    try:
        output, _ = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        # Nobody waits for its end: nvidia-smi cannot be killed while the driver of a broken GPU does not return.
        process.kill()
        return ""
    return output.decode(errors="replace").strip() if process.returncode == 0 else ""


def observe(cluster: str, accelerator: str) -> Seen:
    """Look at the agent, at Docker if it does not answer, and at the accelerators if there is no task."""
    metadata = ask_agent("/v1/metadata")
    tasks = ask_agent("/v1/tasks")
    if metadata is None or tasks is None:
        is_registered = False
        has_task = bool(output_of("docker", "ps", "--quiet", "--filter", f"label={TASK_LABEL}"))
    else:
        # Registered with another cluster, the machine is of no use to those who pay for it.
        is_registered = metadata.get("Cluster") == cluster and bool(metadata.get("ContainerInstanceArn"))
        has_task = any(is_live(task) for task in tasks.get("Tasks") or ())
    uptime = float((ROOT / "proc" / "uptime").read_text().split()[0])
    return Seen(uptime, is_registered, has_task, has_task or has_accelerator(accelerator))


def has_accelerator(kind: str) -> bool:
    """Return whether there is an accelerator of the kind, `gpu` or `neuron`, with its driver."""
    if kind == "neuron":
        return any((ROOT / "dev").glob("neuron[0-9]*"))
    return (ROOT / "dev" / "nvidia0").exists() and output_of("nvidia-smi", "--list-gpus").startswith("GPU ")


def load_state() -> State:
    """Load the state of this boot; a file that is missing or broken starts anew."""
    try:
        return State(**json.loads(STATE.read_text()))
    except (OSError, ValueError, TypeError):
        return State()


def save_state(state: State) -> None:
    """Replace the state at once, so that a run that ends in between leaves the old one."""
    STATE.parent.mkdir(parents=True, exist_ok=True)
    new = STATE.with_suffix(".new")
    new.write_text(json.dumps(asdict(state)))
    new.replace(STATE)


def power_off() -> None:
    """Power off; `halt` would leave the machine running, and paid for."""
    if subprocess.run(["systemctl", "poweroff"], check=False).returncode != 0:
        subprocess.run(["systemctl", "poweroff", "--force"], check=False)


def main() -> None:
    """Judge the machine by the environment that relaunch-watchdog.service sets."""
    limits = Limits(
        idle=60.0 * float(os.environ["IDLE_MINUTES"]),
        registration=60.0 * float(os.environ["REGISTRATION_MINUTES"]),
    )
    state, reason = judge(load_state(), observe(os.environ["CLUSTER"], os.environ["ACCELERATOR"]), limits)
    if reason:
        # The unit writes to the console too, which `aws ec2 get-console-output` shows after the end.
        sys.stdout.write(f"relaunch-watchdog: powering off: {reason}\n")
        sys.stdout.flush()
        power_off()
    save_state(state)


if __name__ == "__main__":
    main()
