"""What torchrun does with the machines of a gang, and that what stands for it in the local world does the same."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from functional.examples.gangs import Gang, Machine
from relaunch_local.ecs.processes import torchrun

PROGRAM = str(Path(__file__).parent / "programs" / "rank_program.py")
LAUNCHERS = [
    pytest.param([sys.executable, torchrun.__file__], id="stand-in"),
    pytest.param([sys.executable, "-m", "torch.distributed.run"], id="torchrun", marks=pytest.mark.multi_node),
]


@pytest.fixture(name="gang", params=LAUNCHERS)
def _gang(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Gang]:
    gang = Gang(tmp_path, [*request.param, PROGRAM])
    yield gang
    gang.close()


def start(gang: Gang, *behaviours: str) -> list[Machine]:
    gang.command += behaviours
    machines = gang.start()
    for machine in machines:
        machine.wait_for("started")
    return machines


def test_workers_know_their_ranks_and_all_agents_end_with_zero(gang: Gang) -> None:
    machines = start(gang, "ends", "ends", "ends")

    assert [each.end() for each in machines] == [0, 0, 0]
    for rank, machine in enumerate(machines):
        assert (
            f"started RANK={rank} LOCAL_RANK=0 GROUP_RANK={rank} WORLD_SIZE=3 LOCAL_WORLD_SIZE=1"
            f" MASTER_ADDR=127.0.0.11 MASTER_PORT={gang.port}\n" in machine.text
        )


def test_each_gpu_of_each_machine_has_a_worker(gang: Gang) -> None:
    gang.gpus = 2
    machines = start(gang, *["ends"] * 6)

    assert [each.end() for each in machines] == [0, 0, 0]
    for rank in range(6):
        place = f"RANK={rank} LOCAL_RANK={rank % 2} GROUP_RANK={rank // 2} WORLD_SIZE=6 LOCAL_WORLD_SIZE=2 "
        assert f"started {place}" in machines[rank // 2].text


def test_sigterm_on_a_machine_reaches_all_its_workers(gang: Gang) -> None:
    gang.gpus = 2
    machines = start(gang, *["saves"] * 6)
    machines[2].wait_for("started")

    machines[2].stop()
    assert machines[2].end() == 1
    assert machines[2].text.count("saved") == 2
    assert [each.process.poll() for each in machines[:2]] == [None, None]


def test_a_worker_that_fails_ends_those_beside_it(gang: Gang) -> None:
    gang.gpus = 2
    machines = start(gang, "saves", "saves", "saves", "fails", "ends", "saves")

    assert machines[1].end() == 1
    assert "saved" in machines[1].text
    machines[2].wait_for("ends")
    # One that ended with 0 ends nobody.
    assert [each.process.poll() for each in (machines[0], machines[2])] == [None, None]


@pytest.mark.multi_node
def test_what_the_command_says_of_workers_wins_over_the_number_of_gpus(tmp_path: Path) -> None:
    gang = Gang(tmp_path, [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "1", PROGRAM], gpus=2)
    with closing(gang):
        machines = start(gang, "ends", "ends", "ends")
        assert [each.end() for each in machines] == [0, 0, 0]
    assert "WORLD_SIZE=3 LOCAL_WORLD_SIZE=1 " in machines[0].text


def test_sigterm_while_it_waits_for_the_others_ends_an_agent_at_once(gang: Gang) -> None:
    gang.command.append("ends")
    with socket.create_server(("127.0.0.11", 0)) as nobody:
        gang.port = nobody.getsockname()[1]
        machine = gang.start_machine(1)
        with nobody.accept()[0]:
            machine.stop()
            assert machine.end() == -signal.SIGTERM
    assert "started" not in machine.text


def test_the_first_process_of_a_container_ignores_sigterm_while_it_waits_for_the_others(gang: Gang) -> None:
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode:
        pytest.skip("namespaces are for root alone here")
    gang.command = [*unshare, *gang.command, "ends"]
    with socket.create_server(("127.0.0.11", 0)) as nobody:
        gang.port = nobody.getsockname()[1]
        machine = gang.start_machine(1)
        with nobody.accept()[0]:
            (first_process,) = machine.children
            os.kill(first_process, signal.SIGTERM)
            status = Path(f"/proc/{first_process}/status").read_text()
    # It is not even pending.
    assert "State:\tZ" not in status
    assert re.findall("(?:SigPnd|ShdPnd):\t(.*)", status) == ["0" * 16] * 2


def test_sigterm_reaches_one_worker_and_its_agent_ends_with_1_though_it_saved(gang: Gang) -> None:
    machines = start(gang, "saves", "saves", "saves")

    machines[2].stop()
    assert machines[2].end() == 1
    assert "saved" in machines[2].text
    assert [each.process.poll() for each in machines[:2]] == [None, None]
    for machine in machines[:2]:
        machine.stop()
    assert [each.end() for each in machines[:2]] == [1, 1]


def test_an_agent_whose_worker_has_ended_waits_for_the_others_and_does_not_hear_sigterm(gang: Gang) -> None:
    machines = start(gang, "ends", "saves", "saves")
    machines[0].wait_for("ends")
    machines[0].wait_for_exit_barrier()

    machines[0].stop()
    machines[1].stop()
    assert machines[1].end() == 1
    assert machines[0].process.poll() is None


def test_any_code_of_a_worker_is_1_and_one_that_ignores_sigterm_is_killed(gang: Gang) -> None:
    gang.environment["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = "1"
    machines = start(gang, "saves", "fails", "ignores")

    assert machines[1].end() == 1
    machines[2].stop()
    machines[0].stop()
    assert [each.end() for each in machines] == [1, 1, 1]
    assert "ignored" in machines[2].text
    assert "ends" not in machines[2].text
