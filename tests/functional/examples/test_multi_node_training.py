"""examples/ddp and examples/fsdp over three machines by real torchrun, each with an address of its own on loopback."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from functional.examples.attempts import EXAMPLES
from functional.examples.gangs import Gang, Machine
from functional.examples.saving import steps_in
from functional.examples.test_relaunch_training import manifest_of
from relaunch_local.ecs.processes import torchrun
from relaunch_training import find_complete

pytestmark = [pytest.mark.multi_node]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
BOUND = str(Path(torchrun.__file__).with_name("gloo_address.py"))
# Many more than a test waits for: none shall be over when a machine is stopped.
STEPS = {"ddp": 1000, "fsdp": 500}
PROGRAM_OF = {name: [str(EXAMPLES / name / "train.py"), "--steps", str(steps)] for name, steps in STEPS.items()}


@pytest.fixture(name="name", params=list(PROGRAM_OF), scope="module")
def _name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(name="gang")
def _gang(tmp_path: Path, name: str) -> Iterator[Gang]:
    yield (gang := Gang(tmp_path, [*TORCHRUN, BOUND, *PROGRAM_OF[name]]))
    gang.close()


@pytest.fixture(name="whole", scope="module")
def _whole(tmp_path_factory: pytest.TempPathFactory, name: str) -> Iterator[list[str]]:
    """What a training that nobody interrupts ends with."""
    gang = Gang(tmp_path_factory.mktemp("whole"), [*TORCHRUN, BOUND, *PROGRAM_OF[name]])
    machines = gang.start()
    machines[0].wait_for("relaunch: step=50 ")
    listening = Path("/proc/net/tcp").read_text()
    yield results_of(machines)
    gang.close()
    for rank in range(3):
        # A listening socket (0A) at 127.0.0.11 and on: the bytes of the address are in the order of the machine.
        assert re.search(f"{11 + rank:02X}00007F:[0-9A-F]{{4}} 00000000:0000 0A", listening)


def results_of(machines: list[Machine]) -> list[str]:
    assert [each.end() for each in machines] == [0] * len(machines), [each.text[-2000:] for each in machines]
    return [result for each in machines for result in re.findall("finished with (.*)", each.text)]


def test_sigterm_on_one_machine_makes_all_save_and_the_next_attempt_ends_with_the_same_bits(
    gang: Gang, name: str, whole: list[str], tmp_path: Path
) -> None:
    machines = gang.start()
    machines[0].wait_for("relaunch: step=50 ")
    machines[2].stop()
    # Its worker saved together with the others, and ended with 0.
    assert machines[2].end() == 1
    step, attempt = steps_in(tmp_path)[0]
    # The workers of the others wait for the signal, because their agents would not hear it after the end of these.
    for machine in machines[:2]:
        machine.stop()
    assert [each.end() for each in machines[:2]] == [1, 1]
    uri = next(find_complete(f"file://{tmp_path}/job-1"))
    manifest = manifest_of(uri)

    assert 50 <= step < STEPS[name]
    assert attempt == 1
    assert all("ChildFailedError" not in each.text for each in machines)
    shards = {"ddp": ["state.pt"], "fsdp": [".metadata", "__0_0.distcp", "__1_0.distcp", "__2_0.distcp"]}[name]
    assert sorted(each["key"] for each in manifest["objects"]) == shards
    assert manifest["nodes"] == 3
    resumed = gang.start(2, uri)
    assert results_of(resumed) == whole
    assert len(set(whole)) == 1
    assert [f"resumed at step {step}\n" in each.text for each in resumed] == [True] * 3


@pytest.mark.parametrize("lost", [0, 2])
def test_the_others_end_with_1_when_a_machine_is_lost_and_the_next_attempt_ends_with_the_same_bits(
    gang: Gang, whole: list[str], tmp_path: Path, lost: int
) -> None:
    machines = gang.start()
    machines[0].wait_for("relaunch: step=50 ")
    machines[0].wait_for("relaunch: step=100 ")
    machines[lost].lose()
    assert [each.end() for each in machines if each is not machines[lost]] == [1, 1]

    step, _ = steps_in(tmp_path)[0]
    assert step >= 50
    resumed = gang.start(2, next(find_complete(f"file://{tmp_path}/job-1")))
    assert results_of(resumed) == whole
    assert [f"resumed at step {step}\n" in each.text for each in resumed] == [True] * 3


def test_fsdp_goes_on_with_another_number_of_machines_and_ddp_refuses_to(
    gang: Gang, name: str, whole: list[str], tmp_path: Path
) -> None:
    machines = gang.start()
    machines[0].wait_for("relaunch: step=100 ")
    for machine in machines:
        machine.stop()
    assert [each.end() for each in machines] == [1, 1, 1]

    # One machine with two processes, which share a folder.
    gang.nodes = 1
    gang.command[len(TORCHRUN) : len(TORCHRUN)] = ["--nproc-per-node", "2"]
    (machine,) = gang.start(2, next(find_complete(f"file://{tmp_path}/job-1")))
    code = machine.end()

    if name == "ddp":
        assert code == 1
        assert "is of 3 machines, not 1: any_nodes=True" in machine.text
    else:
        assert code == 0
        results = re.findall("finished with loss (0x.*) and", machine.text)
        assert len(results) == 2
        # Two processes add in another order than three.
        assert float.fromhex(results[0]) == pytest.approx(float.fromhex(whole[0].split()[1]), rel=1e-3)
