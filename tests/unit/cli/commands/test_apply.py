"""apply."""

import json

import pytest

from fakes.builders import make_container, make_definition, make_revision
from fakes.cli_session import DEFINITIONS, rewrite
from fakes.dependencies import make_dependencies
from fakes.sources import FakeRevisions


def changes(table: str) -> list[list[str]]:
    return [line.split()[:2] for line in table.splitlines()[1:]]


def test_apply_registers_and_says_what_changed(relaunch, session, file):
    first = relaunch("apply", str(file))
    second = relaunch("apply", str(file))

    assert first.exit_code == second.exit_code == 0
    assert changes(first.stdout) == [["resnet", "replaced"], ["bert", "created"]]
    assert changes(second.stdout) == [["resnet", "unchanged"], ["bert", "unchanged"]]
    assert [each.name for each in session.deps.definitions.list_definitions()] == ["bert", "resnet"]


def test_a_dry_run_registers_nothing(relaunch, session, file):
    result = relaunch("apply", str(file), "--dry-run", "--json")

    assert json.loads(result.stdout) == {
        "is_dry_run": True,
        "definitions": [
            {"name": "resnet", "change": "replaced", "notices": []},
            {"name": "bert", "change": "created", "notices": []},
        ],
    }
    assert [each.name for each in session.deps.definitions.list_definitions()] == ["resnet"]


def test_prune_removes_what_the_file_does_not_have(relaunch, session, file):
    session.deps.definitions.save_definition(make_definition(name="old"))

    kept = relaunch("apply", str(file))
    pruned = relaunch("apply", str(file), "--prune")

    assert "old" not in kept.stdout
    assert "removed" in pruned.stdout
    assert [each.name for each in session.deps.definitions.list_definitions()] == ["bert", "resnet"]


def test_every_problem_is_printed_and_nothing_is_registered(relaunch, session, file):
    file.write_text(DEFINITIONS.replace("16GiB", "16GB").replace("prefix: in/", "prefx: in/"), encoding="utf-8")

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    first, second, summary = result.stderr.splitlines()
    assert first.startswith(f"{file}:5:33: jobs.resnet.accelerator.gpu.memory: `16GB` is not in a binary unit")
    assert second.endswith("jobs.bert.on[0].s3.prefx: unknown key `prefx`; did you mean `prefix`?")
    assert summary == f"relaunch: {file} has 2 problems: nothing was registered"
    assert session.deps.definitions.load_definition("bert") is None


def test_an_overlap_with_a_registered_checkpoint_is_refused(relaunch, session, file):
    session.deps.definitions.save_definition(make_definition(name="writer", checkpoint_uri="s3://acme/in/deeper/"))

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    assert "overlaps the checkpoints of `writer`" in result.stderr


def test_a_definition_that_no_offering_satisfies_is_refused_at_its_line(relaunch, file):
    rewrite(file, "gpu: {}", "gpu: {count: 9}")

    result = relaunch("apply", str(file))

    assert result.exit_code == 4
    assert result.stderr.startswith(f"{file}:6:3: jobs.bert: nothing satisfies this job: ")
    assert "relaunch plan" in result.stderr


def test_a_definition_that_is_only_too_dear_right_now_is_registered(relaunch, session, file):
    rewrite(file, "accelerator: {gpu: {}}", "accelerator: {gpu: {}}\n    purchase: spot\n    max_price_per_hour: 0.01")

    result = relaunch("apply", str(file))

    assert result.exit_code == 0
    assert "nothing right now" in result.stdout


def test_a_family_without_an_active_revision_is_refused(relaunch, file):
    rewrite(file, "task_definition: trainer\n    accelerator", "task_definition: missing\n    accelerator")

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    assert result.stderr.startswith(f"{file}:6:3: jobs.bert: the family missing has no ACTIVE revision")


def test_a_container_must_be_named_when_there_are_several(relaunch, session, file):
    several = make_revision(containers=(make_container(), make_container(name="sidecar", gpu_count=0, memory_mib=128)))
    session.deps = make_dependencies(jobs=session.jobs, offerings=session.offerings, revisions=FakeRevisions(several))

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    assert "jobs.bert: trainer:7 has several containers" in result.stderr
    assert "jobs.resnet" not in result.stderr


@pytest.mark.parametrize(
    ("content", "text"), [(None, "cannot be read: No such file or directory"), (b"\xff\xfe", "is not UTF-8 text")]
)
def test_a_file_that_cannot_be_read_is_refused(relaunch, tmp_path, content, text):
    path = tmp_path / "other.yaml"
    if content is not None:
        path.write_bytes(content)

    result = relaunch("apply", str(path))

    assert result.exit_code == 2
    assert text in result.stderr


def test_a_share_of_a_gpu_is_registered_with_notices_on_sharing(relaunch, file):
    rewrite(file, "gpu: {}", "gpu: {memory: 2GiB, compute_percent: 30}")

    result = relaunch("apply", str(file))
    document = json.loads(relaunch("apply", str(file), "--json").stdout)

    assert result.exit_code == 0
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["bert"] * 3
    assert "one CUDA process" in result.stderr
    assert "fail together" in result.stderr
    assert [len(each["notices"]) for each in document["definitions"]] == [0, 3]


def test_a_disk_that_nobody_checks_is_a_notice(relaunch, file):
    rewrite(file, "accelerator: {gpu: {}}", "accelerator: {gpu: {}}\n    disk: 200GiB")

    applied, planned = relaunch("apply", str(file)), relaunch("plan", str(file), "--json")

    assert (applied.exit_code, planned.exit_code) == (0, 0)
    assert "bert: `disk` only counts in the cost" in applied.stderr
    assert [len(each["notices"]) for each in json.loads(planned.stdout)["plans"]] == [0, 1]


def test_an_isolated_share_needs_a_part_of_a_gpu(relaunch, file):
    rewrite(file, "gpu: {}", "gpu: {memory: 2GiB, compute_percent: 30, isolation: required}")

    result = relaunch("apply", str(file))

    assert result.exit_code == 4
    assert "share removed the last 6 of 6 offerings" in result.stderr
    assert "isolation is required" in result.stderr
