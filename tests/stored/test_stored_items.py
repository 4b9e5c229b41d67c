"""What one release stores the next one reads, and the other way: each folder here has what a release wrote."""

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from fakes.builders import make_definition, make_job, make_running_job
from fakes.repository import REPOSITORY
from fakes.stored_machines import change
from relaunch.adapters.aws.dynamodb import job_items
from relaunch.adapters.aws.dynamodb.formats import ATTRIBUTES, FORMATS
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload, PodVolume, SecretKey, Toleration
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import Rank
from relaunch.core.jobs.effects import Effect
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.machines.machine import MachineEffect, MachineState
from stored.read import Group, open_table, pk_of, read_groups, unreadable
from stored.record import plain

FOLDER = Path(__file__).parent
# Until there is a release, the commit before items had formats.
PREVIOUS = "3ffade99"
TODAYS: str = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
VERSIONS = sorted(folder.name for folder in FOLDER.iterdir() if (folder / "items.json.gz").exists())
# What has one of these is a temporary error to the previous release, until a later one has done it.
_LATER_EFFECTS = {"charge-jobs"}
# Changes with every write, and the compression.
_OF_A_WRITE = {"version", "write_id", "packed", "body", "format", "expires_at"}


# No seed has them, and the release before does not know them.
_WITH_POD = make_job(
    definition=make_definition(
        target=Target.ACK,
        kubernetes=KubernetesWorkload(
            "trainer",
            shared_memory_mib=1024,
            secrets={"HF_TOKEN": SecretKey("hf", "token")},
            volumes=(PodVolume("data", "/data"),),
            tolerations=(Toleration("gpu"),),
            pod={"spec": {"containers": [{"name": "main", "resources": {"limits": {"rdma/hca": 1}}}]}},
        ),
    )
)


def _keeping_survivors(**fields: Any) -> Group:
    """Return the items of a job of three nodes that EC2 takes a machine from; it may claim some of two requests."""
    job = make_running_job(definition=make_definition(nodes=3), state=JobState.STOPPING, **fields)
    first = replace(job.current_attempt.placement, machine_id="m-0", instance_id="i-0", capacity_provider="")
    ranks = tuple(Rank(f"m-0-n{rank}", f"i-{rank}", f"task-{rank}") for rank in (1, 2))
    attempt = replace(
        job.current_attempt,
        placement=replace(first, followers=ranks, master_address="10.0.0.7"),
        leaves_survivors=not job.machine_id,
    )
    job = replace(job, attempt=attempt)
    return {
        "kind": "JOB",
        "items": [plain(job_items.job_item(job, "a write")), plain(job_items.attempt_item(job, attempt))],
    }


def groups_of(version: str) -> list[Group]:
    return read_groups(FOLDER / version / "items.json.gz")


def body_of(item: Any) -> Any:
    return item["packed"] if "packed" in item else item["body"]


def saved_again(group: Group) -> Group:
    """Return a job or machine as today's code writes it, which has read it and changes nothing."""
    table, stores = open_table(group)
    if group["kind"] == "JOB":
        job = stores.jobs.load_job(pk_of(group))
        assert job is not None
        stores.jobs.save_job(Decision(job))
    else:
        machine = stores.machines.load_machine(pk_of(group))
        assert machine is not None
        stores.machines.save_machine(change(machine, machine))
    kinds = ("JOB", "ATTEMPT#", "MACHINE")
    written = [plain(item) for item in table.written if item["sk"]["S"].startswith(kinds)]
    written = [item for item in written if not item["pk"]["S"].startswith("EC2#")]
    return {"kind": group["kind"], "items": sorted(written, key=lambda item: item["sk"]["S"], reverse=True)}


def all_saved_again(version: str) -> Iterator[tuple[Group, Group]]:
    for group in groups_of(version):
        if group["kind"] in {"JOB", "MACHINE"}:
            yield group, saved_again(group)


def is_within(before: Any, after: Any) -> bool:
    """Return whether everything is in a value that was there before; a later release writes more fields."""
    if isinstance(before, dict) and isinstance(after, dict):
        return all(name in after and is_within(value, after[name]) for name, value in before.items())
    return bool(before == after)


@pytest.mark.parametrize("version", VERSIONS)
class TestTodaysCode:
    def test_reads_what_that_release_stored(self, version: str) -> None:
        groups = groups_of(version)
        assert len(groups) > 100
        assert list(unreadable(groups)) == []

    def test_loses_nothing_of_it_that_it_does_not_know(self, version: str) -> None:
        for group in groups_of(version):
            if group["kind"] in {"JOB", "MACHINE"}:
                for item in group["items"]:
                    body_of(item)["of_a_newer_release"] = {"every": ["thing", 1]}
                    item["of_a_newer_release"] = {"S": "as it was"}
                for before, after in zip(group["items"], saved_again(group)["items"], strict=True):
                    kept = {name: value for name, value in body_of(before).items() if name != "version"}
                    assert is_within(kept, body_of(after))
                    assert after["of_a_newer_release"] == {"S": "as it was"}

    def test_writes_the_same_item_again(self, version: str) -> None:
        for before, after in all_saved_again(version):
            for stored, written in zip(before["items"], after["items"], strict=True):
                kept = {name: value for name, value in stored.items() if name not in _OF_A_WRITE}
                assert kept == {name: written.get(name) for name in kept}
                assert written["format"] == {"N": "1"}


class TestThePreviousRelease:
    def test_reads_what_todays_code_writes(self, tmp_path: Path) -> None:
        groups = [*groups_of(TODAYS)]
        groups += [after for version in VERSIONS for _, after in all_saved_again(version)]
        groups = [each for each in groups if not _LATER_EFFECTS & set(_effects_of(each))]
        groups.append({"kind": "JOB", "items": [plain(job_items.job_item(_WITH_POD, "a write"))]})
        groups.append(_keeping_survivors(machine_id="m-0", follower_ids=("m-9", "m-0-n2")))
        groups.append(_keeping_survivors())
        file = tmp_path / "items.json.gz"
        file.write_bytes(gzip.compress("\n".join(map(json.dumps, groups)).encode(), 1))

        command = [sys.executable, str(FOLDER / "read.py"), str(file)]
        environment = {**os.environ, "PYTHONPATH": str(_unpack(tmp_path)), "PYTHONDONTWRITEBYTECODE": "1"}
        answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

        assert (answer.returncode, answer.stdout[-4_000:], answer.stderr[-4_000:]) == (0, "", "")


def _effects_of(group: Group) -> Iterator[str]:
    if group["kind"] in {"JOB", "MACHINE"}:
        yield from (each["kind"] for each in body_of(group["items"][0])["pending"])


def _unpack(folder: Path) -> Path:
    """Unpack the code of the previous release."""
    archive = subprocess.run(
        ["git", "archive", PREVIOUS, "layers/relaunch"], cwd=REPOSITORY, capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"the history lacks {PREVIOUS} (a shallow clone?): {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "layers" / "relaunch"


class TestTheRecordsOfTodaysVersion:
    """`make record-items` writes them."""

    def test_have_every_field_that_todays_code_writes(self) -> None:
        for before, after in all_saved_again(TODAYS):
            for stored, written in zip(before["items"], after["items"], strict=True):
                assert _shape(body_of(stored)) == _shape(body_of(written)), "run make record-items"

    def test_have_every_kind_of_item(self) -> None:
        kinds = {"ATTEMPT", *(group["kind"] for group in groups_of(TODAYS))}
        # A turn is only counted, and so are costs and budgets.
        counted = {"BUDGETS", "COSTS", "TURN"}
        assert FORMATS.keys() - kinds - counted == {"MESSAGE", "DELIVERIES", "NOTICE", "RECEIVER", "STATUS", "STATUSES"}

    def test_have_no_attribute_that_is_taken_for_one_of_a_newer_release(self) -> None:
        counted = {"SLOTS", "MACHINES", "CAPACITY", "GROUP", "COSTS"}
        items = [
            item
            for group in groups_of(TODAYS)
            if group["kind"] not in counted and not group["kind"].startswith("message:")
            for item in group["items"]
        ]
        assert {name for item in items for name in item} - ATTRIBUTES == set()

    def test_have_every_state_and_every_effect(self) -> None:
        groups = groups_of(TODAYS)
        for kind, states, effects in (("JOB", JobState, Effect), ("MACHINE", MachineState, MachineEffect)):
            bodies = [body_of(group["items"][0]) for group in groups if group["kind"] == kind]
            assert {body["state"] for body in bodies} == set(states)
            assert {each["kind"] for body in bodies for each in body["pending"]} == {
                each.__dataclass_fields__["kind"].default for each in get_args(effects)
            }


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shape(each) for name, each in value.items()}
    return [_shape(each) for each in value] if isinstance(value, list) else None
