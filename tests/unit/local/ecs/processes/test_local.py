import os
import queue
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from fakes.processes import becomes, is_alive
from relaunch_local.ecs import (
    AutoScalingGroup,
    EcsServer,
    EcsSimulator,
    InProcessClient,
    InstanceShape,
    LocalProcesses,
    LogTarget,
    ProcessSpec,
    ProcessStartError,
    Purchase,
    SimulatorSettings,
    Timing,
    WallClock,
)
from relaunch_local.request_guard.guard import RequestGuard

TIMEOUT_SECONDS = 300.0
WAITING = "import time; print('ready', flush=True); time.sleep(600)"
SAVING = textwrap.dedent(
    """
    import os, signal, sys, time
    def save(*_):
        os.write(1, b"saved\\n")
        sys.exit(0)
    signal.signal(signal.SIGTERM, save)
    print("ready", flush=True)
    time.sleep(600)
    """
)
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"


WALL_CLOCK_SETTINGS = SimulatorSettings(
    instance_types={"g5.xlarge": InstanceShape(4, 16_384, gpus=1, gpu_memory_mib=22_888)}, timing=Timing(scale_out=5.0)
)


def run_saving_task(simulator: EcsSimulator) -> str:
    with simulator.clock.lock:
        simulator.clusters.create({"clusterName": "c"})
        group = AutoScalingGroup("g", "g5.xlarge", Purchase.SPOT, ("us-east-1a",), max_size=1)
        simulator.add_capacity_provider("p", group, cluster="c")
    ecs: Any = InProcessClient(simulator)
    # The clock's speed makes five minutes of them.
    definition = {"name": "main", "image": "i", "memory": 64, "stopTimeout": 30_000}
    command = [sys.executable, "-c", SAVING]
    ecs.register_task_definition(family="train", containerDefinitions=[{**definition, "command": command}])
    strategy = [{"capacityProvider": "p", "weight": 1}]
    answer = ecs.run_task(cluster="c", taskDefinition="train", capacityProviderStrategy=strategy)
    return str(answer["tasks"][0]["taskArn"])


@dataclass
class ProcessRun:
    """Local processes with their output and exit codes."""

    lines: "queue.Queue[str]" = field(default_factory=queue.Queue)
    exits: "queue.Queue[int]" = field(default_factory=queue.Queue)
    targets: list[LogTarget | None] = field(default_factory=list)
    processes: LocalProcesses = field(init=False)

    def __post_init__(self) -> None:
        self.processes = LocalProcesses(self.take_line)

    def take_line(self, target: LogTarget | None, timestamp_ms: int, line: str) -> None:
        assert timestamp_ms > 1_700_000_000_000
        self.targets.append(target)
        self.lines.put(line)

    def start(self, *command: str, **members: Any) -> Any:
        spec = ProcessSpec("arn", "train", "main", "trainer:1", command, {"A": "1"}, self.exited, **members)
        return self.processes.start(spec)

    def exited(self, code: int, _reason: str | None) -> None:
        self.exits.put(code)

    def line(self) -> str:
        return self.lines.get(timeout=TIMEOUT_SECONDS)

    def exit_code(self) -> int:
        return self.exits.get(timeout=TIMEOUT_SECONDS)


@pytest.fixture
def run() -> Iterator[ProcessRun]:
    run = ProcessRun()
    yield run
    run.processes.close()


def test_output_of_both_streams_arrives_line_by_line_before_the_exit(run: ProcessRun) -> None:
    target = LogTarget("g", "s")
    program = "import os,sys; print('out', os.environ['A']); print('err', file=sys.stderr); sys.exit(3)"
    run.start(sys.executable, "-c", program, log_target=target)

    assert run.exit_code() == 3
    assert sorted([run.line(), run.line()]) == ["err", "out 1"]
    assert run.targets == [target, target]


def test_sigterm_that_nobody_handles_is_reported_as_143(run: ProcessRun) -> None:
    handle = run.start(sys.executable, "-c", WAITING)
    assert run.line() == "ready"

    handle.terminate()

    assert run.exit_code() == 143


def test_a_handler_of_sigterm_decides_the_exit_code(run: ProcessRun) -> None:
    handle = run.start(sys.executable, "-c", SAVING)
    assert run.line() == "ready"

    handle.terminate()

    assert run.line() == "saved"
    assert run.exit_code() == 0


def test_sigkill_is_reported_as_137(run: ProcessRun) -> None:
    handle = run.start(sys.executable, "-c", DEAF)
    assert run.line() == "ready"
    handle.terminate()

    handle.kill()

    assert run.exit_code() == 137


@pytest.mark.parametrize("has_session", [False, True], ids=["of its group", "of a session of its own"])
def test_children_of_the_main_process_end_with_it(run: ProcessRun, has_session: object) -> None:
    child = f"subprocess.Popen(['sleep', '600'], start_new_session={has_session})"
    run.start(sys.executable, "-c", f"import os, subprocess; print({child}.pid, flush=True); os._exit(5)")

    child = int(run.line())

    assert run.exit_code() == 5
    assert becomes(lambda: not is_alive(child))


def test_a_command_that_is_not_there_cannot_be_started(run: ProcessRun) -> None:
    with pytest.raises(ProcessStartError, match="executable file not found"):
        run.start("no-such-command")


def test_closing_ends_everything_silently() -> None:
    run = ProcessRun()
    run.start("sh", "-c", "echo $$; sleep 600")
    pid = int(run.line())

    run.processes.close()

    assert not is_alive(pid)
    assert run.exits.empty()
    with pytest.raises(ProcessStartError, match="closing"):
        run.start("true")


def test_containers_die_with_a_simulator_that_was_killed() -> None:
    program = textwrap.dedent(
        """
        import sys, time
        from relaunch_local.ecs import LocalProcesses, ProcessSpec
        processes = LocalProcesses(lambda target, at, line: print(line, flush=True))
        own_session = "setsid sh -c 'echo $$; exec sleep 600' &"
        command = ("sh", "-c", f"{own_session} sleep 600 & echo $$ $!; wait")
        processes.start(ProcessSpec("arn", "f", "main", "i", command, {}, lambda code, reason: None))
        time.sleep(600)
        """
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment) as simulator:
        assert simulator.stdout is not None
        pids = [int(word) for _ in range(2) for word in simulator.stdout.readline().split()]
        assert [is_alive(pid) for pid in pids] == [True] * 3

        simulator.send_signal(signal.SIGKILL)

        assert becomes(lambda: not any(is_alive(pid) for pid in pids))


def test_a_real_training_is_stopped_saves_and_reports_over_the_wall_clock() -> None:
    lines: queue.Queue[str] = queue.Queue()
    stopped: queue.Queue[dict[str, Any]] = queue.Queue()

    def take_event(event: dict[str, Any]) -> None:
        if event["detail"].get("lastStatus") == "STOPPED":
            stopped.put(event["detail"])

    clock = WallClock(speed=100.0)
    simulator = EcsSimulator(clock, LocalProcesses(lambda _target, _at, line: lines.put(line)), WALL_CLOCK_SETTINGS)
    server = EcsServer(simulator, RequestGuard({}.get), on_event=take_event)
    clock.start()
    server.start()
    try:
        arn = run_saving_task(simulator)
        assert lines.get(timeout=TIMEOUT_SECONDS) == "ready"

        InProcessClient(simulator).stop_task(cluster="c", task=arn, reason="interruption")

        detail = stopped.get(timeout=TIMEOUT_SECONDS)
        assert lines.get(timeout=TIMEOUT_SECONDS) == "saved"
        assert (detail["stopCode"], detail["containers"][0]["exitCode"]) == ("UserInitiated", 0)
    finally:
        server.close()
        clock.stop()
