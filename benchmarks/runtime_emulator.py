"""The built functions in Lambda's runtime interface emulator: initialization, first and second invocation, memory.

SAM CLI contains the emulator. It starts the runtime interface client as Lambda does, and reports the duration in its
`INIT REPORT`. Responses of AWS are recorded, over TLS. There is no container and no limit
on processor or memory; on Lambda a function of 512 MiB has a third of a core.
"""

import json
import os
import platform
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path

from benchmarks.built_functions import environment
from benchmarks.errors import NotMeasurableError
from benchmarks.functions_cold_start import FIRST_EVENTS
from benchmarks.recording import Recording, Step
from benchmarks.session import Session
from benchmarks.tables import Table, median
from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.emulator import free_port

INTERPRETER = REPOSITORY / ".venv-bench" / "bin" / "python"
ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64"}
INVOCATIONS = "/2015-03-31/functions/function/invocations"
INIT_REPORT = re.compile(r"INIT REPORT\(durationMs: ([0-9.]+)\)")
TIMEOUT_SECONDS = 30.0
BARE = "bare handler"
BARE_HANDLER = "def handle(event, context):\n    return {}\n"


@dataclass(frozen=True)
class Sample:
    """The measurements of a fresh emulator."""

    init_ms: float
    first_ms: float
    second_ms: float
    peak_mib: float
    first_calls: int
    second_calls: int
    to_stop_ms: float | None = None
    """From the first invocation to the call of StopTask; None where there is none."""


def measure(session: Session) -> list[Table]:
    """Measure every function, and a handler that does nothing."""
    recording = session.recording
    program = _copy_emulator(recording.folder)
    steps = [recording.step("github_webhook", "signed push")]
    steps += [recording.step(function, situation) for function, situation in FIRST_EVENTS.items()]

    def measure_round(_number: int) -> dict[str, Sample]:
        bare = {BARE: _measure_bare(program, recording)}
        return bare | {step.function: _measure_step(program, recording, step) for step in steps}

    samples = session.collect(measure_round)
    return [_table(samples), _stop_table(samples["observe_capacity"])]


def _copy_emulator(folder: Path) -> Path:
    """Copy the emulator from SAM CLI's package, where it is not executable."""
    name = f"aws-lambda-rie-{ARCHITECTURES.get(platform.machine(), platform.machine())}"
    found = sorted((REPOSITORY / ".venv-sam").glob(f"lib/python*/site-packages/samcli/local/rapid/{name}"))
    if not found or not INTERPRETER.exists():
        raise NotMeasurableError(
            f"{found[0] if found else name} or {INTERPRETER} is not installed: run `make setup environment-bench`"
        )
    program = folder / "aws-lambda-rie"
    shutil.copyfile(found[0], program)
    program.chmod(0o755)
    return program


def _measure_bare(program: Path, recording: Recording) -> Sample:
    task = recording.folder / "bare"
    (task / "bare").mkdir(parents=True, exist_ok=True)
    (task / "bare" / "handler.py").write_text(BARE_HANDLER)
    variables = environment("github_webhook", recording.server.url, recording.bundle) | {"PYTHONPATH": str(task)}
    with _running(program, "bare", variables, recording.folder) as emulator:
        return emulator.sample(emulator.invoke({}), emulator.invoke({}))


def _measure_step(program: Path, recording: Recording, step: Step) -> Sample:
    variables = environment(step.function, recording.server.url, recording.bundle, has_machines=step.has_machines)
    with _running(program, step.function, variables, recording.folder) as emulator:
        recording.server.replay(step.exchanges)
        invoked_at = time.perf_counter()
        first = emulator.invoke(step.event)
        recording.server.require_exact()
        stopped_at = recording.server.arrived_at.get("StopTask")
        to_stop = None if stopped_at is None else (stopped_at - invoked_at) * 1000
        recording.server.replay(step.exchanges)
        second = emulator.invoke(step.event)
        calls = len(step.exchanges)
        return replace(emulator.sample(first, second, calls, calls - recording.server.omitted), to_stop_ms=to_stop)


class _Emulator:
    """A running emulator with its port and log."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
        self.process = process
        self._port = port
        self._log = log

    def sample(self, first_ms: float, second_ms: float, first_calls: int = 0, second_calls: int = 0) -> Sample:
        """Return the measurements of two invocations."""
        report = INIT_REPORT.search(self._log.read_text())
        if report is None:
            raise NotMeasurableError(f"the emulator gave no INIT REPORT: {self._log.read_text()[-2000:]}")
        return Sample(float(report[1]), first_ms, second_ms, self._peak_mib(), first_calls, second_calls)

    def invoke(self, event: object) -> float:
        """Invoke the function; return the milliseconds to its response.

        Raises:
            NotMeasurableError: it failed.
        """
        connection = HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_SECONDS)
        started = time.perf_counter()
        connection.request("POST", INVOCATIONS, json.dumps(event))
        response = connection.getresponse()
        answer = response.read().decode()
        milliseconds = (time.perf_counter() - started) * 1000
        connection.close()
        if response.status != 200 or "errorType" in answer or '"itemIdentifier"' in answer:
            raise NotMeasurableError(f"the function failed in the emulator: {response.status} {answer}")
        return milliseconds

    def wait(self) -> None:
        """Wait until it listens."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
                return
            time.sleep(0.01)
        raise NotMeasurableError(f"the emulator does not start: {self._log.read_text()[-2000:]}")

    def children(self) -> list[int]:
        """Return the ids of the child processes."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for children in tasks for pid in children.read_text().split()]

    def _peak_mib(self) -> float:
        (runtime,) = self.children()
        lines = Path(f"/proc/{runtime}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


@contextmanager
def _running(program: Path, package: str, variables: Mapping[str, str], folder: Path) -> Iterator[_Emulator]:
    port = free_port()
    runtime_port = free_port()
    log = folder / "emulator.log"
    settings = {
        "AWS_LAMBDA_FUNCTION_NAME": package,
        "AWS_LAMBDA_FUNCTION_TIMEOUT": "30",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
        "LAMBDA_TASK_ROOT": variables["PYTHONPATH"].partition(os.pathsep)[0],
    }
    command: list[str | Path] = [
        program, "--log-level", "info",
        "--runtime-api-address", f"127.0.0.1:{runtime_port}",
        "--runtime-interface-emulator-address", f"127.0.0.1:{port}",
        INTERPRETER, "-m", "awslambdaric", f"{package}.handler.handle",
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env={**variables, **settings}, cwd=folder, stdout=output, stderr=subprocess.STDOUT
        )
    emulator = _Emulator(process, port, log)
    try:
        emulator.wait()
        yield emulator
    finally:
        _end(emulator)


def _end(emulator: _Emulator) -> None:
    # The runtime has its own process group, so it would outlive the killed emulator.
    runtimes = emulator.children() if emulator.process.poll() is None else []
    emulator.process.kill()
    emulator.process.wait()
    for runtime in runtimes:
        with suppress(ProcessLookupError):
            os.kill(runtime, 9)


def _table(samples: Mapping[str, list[Sample]]) -> Table:
    floor = median(sample.init_ms for sample in samples[BARE])
    rows = [
        (
            case,
            (init := median(sample.init_ms for sample in measured)),
            min(sample.init_ms for sample in measured),
            init / floor,
            median(sample.first_ms for sample in measured),
            measured[0].first_calls,
            median(sample.second_ms for sample in measured),
            measured[0].second_calls,
            median(sample.peak_mib for sample in measured),
        )
        for case, measured in samples.items()
    ]
    return Table(
        f"In the runtime interface emulator; medians of {len(samples[BARE])} interleaved rounds, a fresh emulator each",
        (
            "function",
            "INIT REPORT ms",
            "fastest",
            "x bare",
            "1st event ms",
            "calls",
            "2nd event ms",
            "calls",
            "peak MiB",
        ),
        rows,
        (
            "INIT REPORT: imports, and what is made at import. The 1st event's time to its answer contains it, and the "
            "making of clients and connections;",
            "the 2nd is the same event again, in the same environment. calls: how many each made to AWS.",
        ),
    )


def _stop_table(samples: list[Sample]) -> Table:
    """Return how long a spot warning takes in an environment that is fresh, until ECS is asked to stop the task."""
    times = [sample.to_stop_ms for sample in samples if sample.to_stop_ms is not None]
    return Table(
        f"From EC2's spot warning to StopTask, cold, in the runtime interface emulator; {len(times)} rounds",
        ("function", "median ms", "fastest", "slowest"),
        [("observe_capacity", median(times), min(times), max(times))],
        ("It contains the initialization. Not measured: EventBridge, SQS, the start of the environment.",),
    )
