"""What `make demo NODES=3` shows is true: verified from the records in demo.json. `make test-demo-nodes` runs it.

It is run twice in one folder: until Ctrl-C while it trains, and then to its end.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from fakes.demo_evidence import Json, environment, moment, tasks_of
from fakes.demo_process import DemoProcess, running_demo

pytestmark = pytest.mark.multi_node
NODES = 3
IT_TRAINS = "gloo of each rank listens at"
HELD = 70


@dataclass(frozen=True)
class DemoRuns:
    """Two demos that ran one after the other, the first of them until Ctrl-C."""

    interrupted: DemoProcess
    shown: DemoProcess
    exit_codes: tuple[int, int]
    folder: Path


@pytest.fixture(scope="session")
def runs(built: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoRuns]:
    assert built
    folder = tmp_path_factory.mktemp("demo-of-a-gang")
    with running_demo(folder, "--nodes", str(NODES)) as interrupted:
        interrupted.read_until(IT_TRAINS)
        interrupted.interrupt()
        first = interrupted.finish()
    with running_demo(folder, "--nodes", str(NODES)) as shown:
        yield DemoRuns(interrupted, shown, (first, shown.finish()), folder)


@pytest.fixture(scope="session")
def evidence(runs: DemoRuns) -> Json:
    return Json(json.loads((runs.folder / "demo.json").read_text()))


@pytest.fixture(scope="session")
def job(evidence: Json) -> Json:
    found: Json = evidence["jobs"]["push"]
    return found


def rank_lines(evidence: Json, attempt: int, pattern: str) -> list[tuple[int, str]]:
    """Return the rank, and what the pattern finds, of each line of an attempt in which it finds something."""
    found = [
        (each["rank"], match.group(1))
        for each in evidence["rank_logs"]
        if each["attempt"] == attempt and (match := re.search(pattern, each["text"]))
    ]
    return sorted(found)


def test_one_ends_at_ctrl_c_and_the_next_comes_true(runs: DemoRuns) -> None:
    assert runs.exit_codes == (130, 0), runs.interrupted.errors + runs.shown.errors
    assert runs.interrupted.errors == "demo: interrupted; the local world is removed\n"
    assert runs.shown.errors == ""
    lines = map(str.rstrip, runs.shown.output.splitlines())
    assert [each for each in lines if len(each) > 80 and " " in each.strip()] == []  # one word is whole


def test_nothing_is_left_of_either_but_the_evidence(runs: DemoRuns) -> None:
    for demo in (runs.interrupted, runs.shown):
        # Three agents and three workers, which have sessions of their own.
        assert len(demo.started) > 2 * NODES
        assert demo.remains() == []
    assert [each.name for each in runs.folder.iterdir()] == ["demo.json"]


def test_all_machines_are_one_request_then_one_is_replaced_and_each_has_an_address_of_loopback(
    evidence: Json, job: Json
) -> None:
    fleets = [each["parameters"] for each in evidence["requests"] if each["action"] == "CreateFleet"]
    first, second = fleets
    assert first["TargetCapacitySpecification"]["TotalTargetCapacity"] == NODES
    assert first["SpotOptions"]["MinTargetCapacity"] == NODES
    assert second["TargetCapacitySpecification"]["TotalTargetCapacity"] == 1
    assert len(evidence["instances"]) == NODES + 1
    assert {each["state"] for each in evidence["instances"]} == {"terminated"}
    placed = [each for each in evidence["requests"] if each["action"] == "RunTask" and each["outcome"] == "ok"]
    by_attempt: dict[str, dict[str, str]] = {}
    for variables in map(environment, placed):
        here = by_attempt.setdefault(variables["RELAUNCH_ATTEMPT"], {})
        here[variables["PET_NODE_RANK"]] = variables["PET_MASTER_ADDR"]
    assert [sorted(each) for each in by_attempt.values()] == [["0", "1", "2"]] * 2
    for attempt in by_attempt.values():
        (meeting,) = set(attempt.values())
        assert IPv4Address(meeting) in IPv4Network("127.16.0.0/12")


def test_one_warning_stops_every_rank_and_the_machine_of_one_alone_was_warned(evidence: Json, job: Json) -> None:
    (warning,) = (each for each in evidence["actions"] if each["action"] == "warning")
    stops = [each["parameters"]["task"] for each in evidence["requests"] if each["action"] == "StopTask"]
    first = tasks_of(evidence, job)[:NODES]

    assert {each["taskArn"] for each in first} == set(stops)
    assert {each["containers"][0]["exitCode"] for each in first} == {1}
    assert warning["instance_id"] in {each["instance_id"] for each in evidence["instances"]}
    assert [each["stop"]["kind"] for each in job["attempts"]] == ["interruption", "success"]
    assert (job["failures"], job["interruptions"]) == (0, 1)


def test_no_task_of_the_second_generation_lived_with_one_of_the_first(evidence: Json, job: Json) -> None:
    tasks = tasks_of(evidence, job)

    assert [each["startedBy"].rpartition("/")[2] for each in tasks] == ["1"] * NODES + ["2"] * NODES
    assert max(moment(each["stoppedAt"]) for each in tasks[:NODES]) <= min(
        moment(each["createdAt"]) for each in tasks[NODES:]
    )


def test_all_ranks_resume_from_the_step_at_which_all_saved(evidence: Json) -> None:
    (saved,) = (row["manifest"] for row in evidence["checkpoints"] if row.get("manifest", {}).get("step") == HELD)

    assert (saved["nodes"], saved["attempt"]) == (NODES, 1)
    assert rank_lines(evidence, 1, "resumed at step (.*)") == []
    assert rank_lines(evidence, 2, "resumed at step (.*)") == [(rank, str(HELD)) for rank in range(NODES)]


def test_every_rank_ends_with_the_bits_of_a_training_that_nobody_interrupted(evidence: Json, job: Json) -> None:
    (ending,) = evidence["endings"]
    finished = rank_lines(evidence, 2, "finished with (loss .* and weights .*)")

    assert job["state"] == "SUCCEEDED"
    assert [rank for rank, _ in finished] == list(range(NODES))
    assert len(ending["uninterrupted"]) == NODES
    alone = {f"loss {each['loss']} and weights {each['weights_sha256']}" for each in ending["uninterrupted"]}
    assert {text for _, text in finished} == alone
    assert len(alone) == 1
    # A training that did nothing would end alike too.
    assert 0 < float.fromhex(ending["uninterrupted"][0]["loss"]) < 0.5
