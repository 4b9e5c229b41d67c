"""The watchdog as the timer runs it: on a machine of files, with an agent on loopback, at uptimes of the test."""

import ast
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.machine_host import Agent, MachineHost, ecs_agent, refusing_address
from fakes.repository import REPOSITORY

pytestmark = pytest.mark.slow

WATCHDOG = REPOSITORY / "infrastructure" / "user_data" / "watchdog.py"
MODULE = runpy.run_path(str(WATCHDOG))
Seen, State, Limits, judge = (MODULE[name] for name in ("Seen", "State", "Limits", "judge"))
IDLE, REGISTRATION = 20 * 60, 15 * 60
LIMITS = Limits(idle=IDLE, registration=REGISTRATION)
RUNNING = {"DesiredStatus": "RUNNING", "KnownStatus": "RUNNING"}
PENDING = {"DesiredStatus": "RUNNING", "KnownStatus": "PENDING"}
STOPPING = {"DesiredStatus": "STOPPED", "KnownStatus": "RUNNING"}
STOPPED = {"DesiredStatus": "STOPPED", "KnownStatus": "STOPPED"}
# "KnownStatus": STOPPED of a task that ended by itself comes without a desired status.
ENDED = {"KnownStatus": "STOPPED"}

RunAt = Callable[..., Any]


@pytest.fixture
def agent() -> Iterator[Agent]:
    with ecs_agent() as agent:
        yield agent


@pytest.fixture
def host(tmp_path: Path) -> MachineHost:
    host = MachineHost(tmp_path)
    host.add_device("nvidia0")
    host.let("nvidia-smi", "GPU 0: Tesla T4 (UUID: GPU-7f2c)\n")
    return host


@pytest.fixture
def run_at(host: MachineHost, agent: Agent) -> RunAt:
    """Return what runs the watchdog at uptimes, one run a minute between two of them as the timer does."""

    def run(*uptimes: float, url: str | None = None, accelerator: str = "gpu") -> str:
        output = ""
        for uptime in uptimes:
            host.boot_for(uptime)
            done = host.run(
                *(sys.executable, "-I", WATCHDOG),
                RELAUNCH_AGENT=url or agent.url,
                CLUSTER="training",
                ACCELERATOR=accelerator,
                IDLE_MINUTES="20",
                REGISTRATION_MINUTES="15",
            )
            assert (done.returncode, done.stderr) == (0, "")
            output += done.stdout
        return output

    return run


def test_a_machine_without_a_task_is_powered_off_when_its_minutes_are_over(
    host: MachineHost, agent: Agent, run_at: RunAt
) -> None:
    agent.register()
    run_at(60, 60 + IDLE - 1)
    assert host.power_offs == []

    output = run_at(60 + IDLE)

    assert host.power_offs == ["systemctl poweroff"]
    assert output == "relaunch-watchdog: powering off: no task for 1200 s\n"


@pytest.mark.parametrize("status", [RUNNING, PENDING], ids=["running", "pending"])
def test_a_machine_with_a_task_never_is(host: MachineHost, agent: Agent, run_at: RunAt, status: dict[str, str]) -> None:
    agent.register()
    agent.run_tasks(STOPPED, status)

    run_at(60, IDLE, 86_400, 30 * 86_400)

    assert host.power_offs == []


def test_the_minutes_begin_when_the_last_task_ends(host: MachineHost, agent: Agent, run_at: RunAt) -> None:
    agent.register()
    agent.run_tasks(RUNNING)
    run_at(60, 86_400)
    agent.run_tasks(STOPPED)
    run_at(86_460, 86_400 + IDLE - 1)
    assert host.power_offs == []

    run_at(86_400 + IDLE)

    assert host.power_offs == ["systemctl poweroff"]


@pytest.mark.parametrize("status", [STOPPED, ENDED, STOPPING], ids=["stopped", "ended by itself", "stopping"])
def test_tasks_that_stopped_or_never_end_stopping_are_none(
    host: MachineHost, agent: Agent, run_at: RunAt, status: dict[str, str]
) -> None:
    agent.register()
    agent.run_tasks(status)

    run_at(60, 60 + IDLE)

    assert host.power_offs == ["systemctl poweroff"]


def test_a_machine_that_never_registered_is_powered_off_at_the_deadline(host: MachineHost, run_at: RunAt) -> None:
    with refusing_address() as url:
        run_at(60, REGISTRATION - 1, url=url)
        assert host.power_offs == []

        output = run_at(REGISTRATION, url=url)

    assert host.power_offs == ["systemctl poweroff"]
    assert "not registered 900 s after the boot" in output


def test_a_machine_of_another_cluster_never_registered(host: MachineHost, agent: Agent, run_at: RunAt) -> None:
    agent.register("default")

    output = run_at(60, REGISTRATION)

    assert host.power_offs == ["systemctl poweroff"]
    assert "not registered" in output


def test_an_agent_that_answers_before_it_has_an_arn_is_not_registered(
    host: MachineHost, agent: Agent, run_at: RunAt
) -> None:
    agent.register()
    agent.answers["/v1/metadata"]["ContainerInstanceArn"] = None

    assert "not registered" in run_at(60, REGISTRATION)


def test_an_agent_that_restarts_ends_no_machine_with_a_task(host: MachineHost, agent: Agent, run_at: RunAt) -> None:
    agent.register()
    agent.run_tasks(RUNNING)
    run_at(REGISTRATION)
    host.let("docker", "1f0c6f5a9b2e\n")
    with refusing_address() as url:
        run_at(REGISTRATION + 60, REGISTRATION + 60 + IDLE, url=url)

    run_at(REGISTRATION + 120 + IDLE)

    assert host.power_offs == []
    assert "docker ps --quiet --filter label=com.amazonaws.ecs.task-arn" in host.calls


def test_an_agent_that_restarts_ends_no_machine_without_a_task_either(
    host: MachineHost, agent: Agent, run_at: RunAt
) -> None:
    agent.register()
    run_at(REGISTRATION)
    with refusing_address() as url:
        run_at(REGISTRATION + 30, REGISTRATION + 60, url=url)

    run_at(REGISTRATION + 90)

    assert host.power_offs == []


@pytest.mark.parametrize("docker", [0, 1], ids=["Docker has no task", "Docker does not answer either"])
def test_an_agent_that_never_comes_back_ends_a_machine_that_runs_nothing(
    host: MachineHost, agent: Agent, run_at: RunAt, docker: int
) -> None:
    agent.register()
    agent.run_tasks(RUNNING)
    run_at(3_600)
    host.let("docker", status=docker)
    with refusing_address() as url:
        run_at(3_660, 3_600 + IDLE - 1, url=url)
        assert host.power_offs == []

        run_at(3_600 + IDLE, url=url)

    assert host.power_offs == ["systemctl poweroff"]


@pytest.mark.parametrize("answer", ["", "<html>", "[]", "null"])
def test_what_is_no_answer_of_an_agent_is_none(host: MachineHost, agent: Agent, run_at: RunAt, answer: str) -> None:
    agent.answers.update({"/v1/metadata": answer, "/v1/tasks": answer})
    run_at(60)
    assert host.power_offs == []

    assert "not registered" in run_at(REGISTRATION)


def test_the_list_of_tasks_may_be_null(host: MachineHost, agent: Agent, run_at: RunAt) -> None:
    agent.register()
    agent.answers["/v1/tasks"] = {"Tasks": None}

    assert "no task" in run_at(60, 60 + IDLE)


@pytest.mark.parametrize(
    ("devices", "answers", "status"),
    [
        pytest.param((), "", 0, id="no device"),
        pytest.param(("nvidia0",), "No devices were found\n", 0, id="no GPU"),
        pytest.param(("nvidia0",), "GPU 0: Tesla T4\n", 9, id="no driver"),
    ],
)
def test_a_machine_without_its_gpu_is_powered_off(
    tmp_path: Path, agent: Agent, request: pytest.FixtureRequest, devices: tuple[str, ...], answers: str, status: int
) -> None:
    host: MachineHost = request.getfixturevalue("host")
    run_at: RunAt = request.getfixturevalue("run_at")
    (host.root / "dev" / "nvidia0").unlink()
    for device in devices:
        host.add_device(device)
    host.let("nvidia-smi", answers, status)
    agent.register()
    run_at(60, REGISTRATION - 1)
    assert host.power_offs == []

    output = run_at(REGISTRATION)

    assert host.power_offs == ["systemctl poweroff"]
    assert "no accelerator 900 s after the boot" in output


def test_a_gpu_that_comes_late_or_is_away_for_a_moment_is_no_reason(
    host: MachineHost, agent: Agent, run_at: RunAt
) -> None:
    agent.register()
    (host.root / "dev" / "nvidia0").unlink()
    run_at(60, REGISTRATION - 60)
    host.add_device("nvidia0")
    run_at(REGISTRATION)
    (host.root / "dev" / "nvidia0").unlink()
    run_at(REGISTRATION + 60)
    host.add_device("nvidia0")

    run_at(REGISTRATION + 180)

    assert host.power_offs == []


def test_the_driver_of_a_machine_with_a_task_is_left_alone(host: MachineHost, agent: Agent, run_at: RunAt) -> None:
    agent.register()
    agent.run_tasks(RUNNING)
    host.let("nvidia-smi", status=9)

    run_at(60, REGISTRATION, REGISTRATION + 600)

    assert host.power_offs == []
    assert not [call for call in host.calls if call.startswith("nvidia-smi")]


@pytest.mark.parametrize(("devices", "is_kept"), [(("neuron0",), True), (("neuron_x",), False), ((), False)])
def test_a_neuron_machine_needs_a_neuron_device(
    host: MachineHost, agent: Agent, run_at: RunAt, devices: tuple[str, ...], *, is_kept: bool
) -> None:
    agent.register()
    for device in devices:
        host.add_device(device)

    run_at(60, REGISTRATION, accelerator="neuron")

    assert (host.power_offs == []) is is_kept


def test_a_driver_that_hangs_is_no_gpu_and_nobody_waits_for_it(tmp_path: Path) -> None:
    # What waits for a broken driver outlives SIGKILL, as this process does which nobody kills before the end.
    script = f"""
import runpy
watchdog = runpy.run_path({str(WATCHDOG)!r})
class Stuck(watchdog["subprocess"].Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        started.append(self)
    def kill(self): pass
    def communicate(self, timeout): return super().communicate(timeout=0.2)
started, watchdog["subprocess"].Popen = [], Stuck
try:
    print(repr(watchdog["output_of"]("sleep", "600")), started[0].poll())
finally:
    super(Stuck, started[0]).kill()
"""
    host = MachineHost(tmp_path)
    (host.programs / "sleep").unlink()

    assert host.run(sys.executable, "-c", script).stdout == "'' None\n"


def test_the_state_outlives_the_timer_but_not_the_boot(host: MachineHost, agent: Agent, run_at: RunAt) -> None:
    agent.register()
    run_at(60)

    assert (host.root / "run" / "relaunch" / "watchdog.json").is_file(), "/run is empty after a boot"


def test_a_broken_state_starts_anew(host: MachineHost, agent: Agent, run_at: RunAt) -> None:
    agent.register()
    run_at(60)
    (host.root / "run" / "relaunch" / "watchdog.json").write_text('{"registered": 6')

    run_at(60 + IDLE, 60 + IDLE + 600)
    assert host.power_offs == []

    run_at(60 + 2 * IDLE)
    assert host.power_offs == ["systemctl poweroff"]


def test_a_power_off_that_fails_is_forced_and_tried_again(host: MachineHost, agent: Agent, run_at: RunAt) -> None:
    host.let("systemctl", status=1)
    agent.register()

    run_at(60, 60 + IDLE, 120 + IDLE)

    assert host.power_offs == ["systemctl poweroff", "systemctl poweroff --force"] * 2


def test_a_state_that_cannot_be_saved_keeps_no_machine_from_ending(
    host: MachineHost, agent: Agent, run_at: RunAt
) -> None:
    (host.root / "run").touch()

    with pytest.raises(AssertionError), refusing_address() as url:
        run_at(REGISTRATION, url=url)

    assert host.power_offs == ["systemctl poweroff"]


runs = st.lists(st.tuples(st.floats(0, 7_200), st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=12)


@given(runs)
def test_a_run_that_sees_a_task_never_ends_the_machine(observed: list[tuple[float, bool, bool, bool]]) -> None:
    state, uptime = State(), 0.0
    for seconds, is_registered, has_task, has_accelerator in observed:
        uptime += seconds
        state, reason = judge(state, Seen(uptime, is_registered, has_task, has_accelerator), LIMITS)
        assert not (has_task and reason)


@given(runs)
def test_whatever_was_seen_before_a_machine_that_nobody_uses_ends(
    observed: list[tuple[float, bool, bool, bool]],
) -> None:
    state, uptime = State(), 0.0
    for seconds, is_registered, has_task, has_accelerator in observed:
        uptime += seconds
        state, _ = judge(state, Seen(uptime, is_registered, has_task, has_accelerator), LIMITS)

    _, reason = judge(
        state, Seen(uptime + IDLE + REGISTRATION, is_registered=False, has_task=False, has_accelerator=True), LIMITS
    )

    assert reason


def test_it_reads_no_clock_that_anybody_can_set() -> None:
    tree = ast.parse(WATCHDOG.read_text(encoding="utf-8"))
    imports = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}

    assert not imports & {"time", "datetime"}


def test_it_is_python_3_9() -> None:
    ast.parse(WATCHDOG.read_text(encoding="utf-8"), feature_version=(3, 9))
    # New in 3.10, and no matter of syntax.
    assert "slots=" not in WATCHDOG.read_text(encoding="utf-8")
