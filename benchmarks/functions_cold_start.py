"""The time from a fresh process to the first handled event, and its memory, for all functions but the webhook.

The built artifacts are measured, with recorded responses of AWS over TLS. Compared with boto3, as pip installs it,
which creates the same clients and calls nothing, and with a bare interpreter.
"""

import json
import sysconfig
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.built_functions import environment, handling
from benchmarks.fresh_process import Sample, aws_environment, medians
from benchmarks.fresh_process import measure as measure_process
from benchmarks.recording import Recording, Step
from benchmarks.session import Session, rotated
from benchmarks.tables import Table
from relaunch_local.repository import REPOSITORY

FIRST_EVENTS = {
    "submit_job": "push",
    "job_api": "submit",
    "plan_api": "compare a file",
    "launch_attempt": "first launch",
    "observe_capacity": "spot warning",
    "observe_task": "task runs",
    "reconcile": "one job is due",
    "request_machine": "EC2 Fleet is asked",
}
CLIENTS = """
import boto3
session = boto3.Session()
clients = [session.client(service) for service in {services!r}]
"""
BARE = "bare interpreter"
RATIOS = Path(__file__).with_name("cold_start_ratios.json")
"""The last measured version, and how many times the processor time of boto3 each of its functions took."""


def measure(session: Session) -> list[Table]:
    """Measure every function and its peer."""
    recording = session.recording
    steps = [recording.step(function, situation) for function, situation in FIRST_EVENTS.items()]
    samples = session.collect(lambda number: _measure_round(recording, rotated(steps, number)))
    ratios = {step.function: _ratio(step, samples) for step in steps}
    earlier = json.loads(RATIOS.read_bytes())
    if session.writes_ratios:
        written = {"version": _version(), "ratios": {name: round(each, 2) for name, each in ratios.items()}}
        RATIOS.write_text(json.dumps(written, indent=2) + "\n")
    return [_table(steps, samples), compare(ratios, earlier)]


def _version() -> str:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def _ratio(step: Step, samples: Mapping[str, list[Sample]]) -> float:
    ours, boto3 = (medians(samples[case]).processor_milliseconds for case in (step.function, _peer(step)))
    return ours / boto3


def compare(ratios: Mapping[str, float], earlier: Mapping[str, Any]) -> Table:
    """Return by how much each function has grown since the last measured version."""
    before: Mapping[str, float] = earlier["ratios"]
    rows = [
        (name, ratio, before.get(name), (ratio / before[name] - 1) * 100 if name in before else None)
        for name, ratio in ratios.items()
    ]
    return Table(
        "Processor time to the first handled event, as a multiple of boto3's",
        ("function", "x boto3", f"x at {earlier['version']}", "grown by %"),
        rows,
        ("Ratios of processor times move by a tenth from run to run on a busy machine.",),
    )


def _measure_round(recording: Recording, steps: list[Step]) -> dict[str, Sample]:
    peer_environment = aws_environment(recording.server.url, str(recording.bundle), sysconfig.get_path("purelib"))
    measured = {BARE: measure_process("", peer_environment)}
    for step in steps:
        measured[step.function] = _measure_step(recording, step)
        peer = _peer(step)
        if peer not in measured:
            measured[peer] = measure_process(CLIENTS.format(services=step.services), peer_environment)
    return measured


def _measure_step(recording: Recording, step: Step) -> Sample:
    """Measure a fresh process that handles the event of a step, with the recorded responses."""
    recording.server.replay(step.exchanges)
    code = handling(step.function, step.event, recording.folder)
    variables = environment(step.function, recording.server.url, recording.bundle, has_machines=step.has_machines)
    sample = measure_process(code, variables)
    recording.server.require_exact()
    return sample


def _peer(step: Step) -> str:
    return f"boto3: {', '.join(step.services)}"


def _table(steps: list[Step], samples: dict[str, list[Sample]]) -> Table:
    measured = {case: medians(each) for case, each in samples.items()}
    fastest = {case: min(each).milliseconds for case, each in samples.items()}
    bare = measured[BARE]
    rows: list[tuple[str | float | None, ...]] = [
        (BARE, "", bare.milliseconds, fastest[BARE], *bare[1:], 1.0, None, None, None)
    ]
    for step in steps:
        ours = measured[step.function]
        peer = measured[_peer(step)]
        ratios = (ours.milliseconds / bare.milliseconds, peer.milliseconds, ours.milliseconds / peer.milliseconds)
        ours_measured = (ours.milliseconds, fastest[step.function], *ours[1:])
        rows.append((step.function, step.situation, *ours_measured, *ratios, peer.peak_mib))
    return Table(
        f"Fresh process to the first handled event, and its memory; medians of {len(samples[BARE])} interleaved rounds",
        ("function", "event", "ms", "fastest", "CPU ms", "peak MiB", "x bare", "boto3 ms", "x boto3", "boto3 MiB"),
        rows,
        (
            "boto3: the same clients made and nothing called, with boto3 and its models as pip installs them.",
            "Ours is the whole: imports, clients, TLS, every call about the event (see the calls), the answer.",
        ),
    )
