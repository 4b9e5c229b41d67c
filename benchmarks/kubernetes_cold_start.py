"""What the Kubernetes targets cost functions that start: fresh process to the first handled event, and its memory.

The event is about a job on ECS. A function is measured in a stack without a cluster; in one with an ACK cluster, whose
layer and settings it has; and there until it has also loaded the target of ACK with its client, as the first job on ACK
makes it do. The cluster is not called.
"""

from benchmarks.built_functions import environment, handling, may_call_kubernetes
from benchmarks.fresh_process import Sample, medians
from benchmarks.fresh_process import measure as measure_process
from benchmarks.functions_cold_start import FIRST_EVENTS
from benchmarks.recording import Recording, Step
from benchmarks.session import Session, rotated
from benchmarks.tables import Table

WITHOUT = "without a cluster"
WITH = "with one"
LOADED = "target loaded"
LOAD = """
from relaunch.bootstrap import function
from relaunch.core.definitions.targets import Target
assert type(function().deps.targets.named(Target.ACK)).__name__ == "KubernetesTarget"
"""


def measure(session: Session) -> list[Table]:
    """Measure every function that gets the layer for Kubernetes."""
    recording = session.recording
    steps = [
        recording.step(function, situation)
        for function, situation in FIRST_EVENTS.items()
        if may_call_kubernetes(function)
    ]
    return [_table(steps, session.collect(lambda number: _measure_round(recording, rotated(steps, number), number)))]


def _measure_round(recording: Recording, steps: list[Step], number: int) -> dict[str, Sample]:
    return {
        _name(step, case): _measure_step(recording, step, case)
        for step in steps
        for case in rotated([WITHOUT, WITH, LOADED], number)
    }


def _measure_step(recording: Recording, step: Step, case: str) -> Sample:
    recording.server.replay(step.exchanges)
    code = handling(step.function, step.event, recording.folder) + (LOAD if case == LOADED else "")
    variables = environment(
        step.function,
        recording.server.url,
        recording.bundle,
        has_machines=step.has_machines,
        has_kubernetes=case != WITHOUT,
    )
    sample = measure_process(code, variables)
    recording.server.require_exact()
    return sample


def _name(step: Step, case: str) -> str:
    return f"{step.function} {case}"


def _table(steps: list[Step], samples: dict[str, list[Sample]]) -> Table:
    measured = {case: medians(each) for case, each in samples.items()}
    rows: list[tuple[str | float | None, ...]] = []
    for step in steps:
        without = measured[_name(step, WITHOUT)]
        for case in (WITHOUT, WITH, LOADED):
            name = _name(step, case)
            fastest = min(samples[name]).milliseconds
            ratio = measured[name].milliseconds / without.milliseconds
            rows.append((step.function, case, measured[name].milliseconds, fastest, *measured[name][1:], ratio))
    rounds = len(next(iter(samples.values())))
    return Table(
        f"Fresh process to the first event on ECS, and its memory; medians of {rounds} interleaved rounds",
        ("function", "stack", "ms", "fastest", "CPU ms", "peak MiB", "x without"),
        rows,
        (
            "with one: the layer for Kubernetes is attached and an ACK cluster is set; no job is on it.",
            "target loaded: then the target of ACK with its client is made, without a call of the cluster.",
        ),
    )
