"""apply, plan and definitions."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.builders import make_container, make_definition, make_revision
from fakes.cli_session import Stage
from fakes.dependencies import make_dependencies
from fakes.sources import FakeImages, FakeRevisions
from relaunch.core.revisions.images import FoundImage
from relaunch.ports import PermanentError, TransientError

GOOD = """jobs:
  resnet:
    task_definition: trainer
    container: main
    accelerator: {gpu: {memory: 16GiB}}
  bert:
    task_definition: trainer
    accelerator: {gpu: {}}
    on: [s3: {bucket: acme, prefix: in/}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "relaunch.yaml"
    path.write_text(GOOD, encoding="utf-8")
    return path


def rewrite(file: Path, old: str, new: str) -> None:
    assert old in GOOD
    file.write_text(GOOD.replace(old, new), encoding="utf-8")


def changes(table: str) -> list[list[str]]:
    return [line.split()[:2] for line in table.splitlines()[1:]]


def test_apply_registers_and_says_what_changed(relaunch, stage, file):
    first = relaunch("apply", str(file))
    second = relaunch("apply", str(file))

    assert first.exit_code == second.exit_code == 0
    assert changes(first.stdout) == [["resnet", "replaced"], ["bert", "created"]]
    assert changes(second.stdout) == [["resnet", "unchanged"], ["bert", "unchanged"]]
    assert [each.name for each in stage.jobs.list_definitions()] == ["bert", "resnet"]


def test_a_dry_run_registers_nothing(relaunch, stage, file):
    result = relaunch("apply", str(file), "--dry-run", "--json")

    assert json.loads(result.stdout) == {
        "is_dry_run": True,
        "definitions": [
            {"name": "resnet", "change": "replaced", "notices": []},
            {"name": "bert", "change": "created", "notices": []},
        ],
    }
    assert [each.name for each in stage.jobs.list_definitions()] == ["resnet"]


def test_prune_removes_what_the_file_does_not_have(relaunch, stage, file):
    stage.jobs.save_definition(make_definition(name="old"))

    kept = relaunch("apply", str(file))
    pruned = relaunch("apply", str(file), "--prune")

    assert "old" not in kept.stdout
    assert "removed" in pruned.stdout
    assert [each.name for each in stage.jobs.list_definitions()] == ["bert", "resnet"]


def test_every_problem_is_printed_and_nothing_is_registered(relaunch, stage, file):
    file.write_text(GOOD.replace("16GiB", "16GB").replace("prefix: in/", "prefx: in/"), encoding="utf-8")

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    first, second, summary = result.stderr.splitlines()
    assert first.startswith(f"{file}:5:33: jobs.resnet.accelerator.gpu.memory: `16GB` is not in a binary unit")
    assert second.endswith("jobs.bert.on[0].s3.prefx: unknown key `prefx`; did you mean `prefix`?")
    assert summary == f"relaunch: {file} has 2 problems: nothing was registered"
    assert stage.jobs.load_definition("bert") is None


def test_an_overlap_with_a_registered_checkpoint_is_refused(relaunch, stage, file):
    stage.jobs.save_definition(make_definition(name="writer", checkpoint_uri="s3://acme/in/deeper/"))

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    assert "overlaps the checkpoints of `writer`" in result.stderr


def test_a_definition_that_no_offering_satisfies_is_refused_at_its_line(relaunch, file):
    rewrite(file, "gpu: {}", "gpu: {count: 9}")

    result = relaunch("apply", str(file))

    assert result.exit_code == 4
    assert result.stderr.startswith(f"{file}:6:3: jobs.bert: nothing satisfies this job: ")
    assert "relaunch plan" in result.stderr


def test_a_definition_that_is_only_too_dear_right_now_is_registered(relaunch, stage, file):
    rewrite(file, "accelerator: {gpu: {}}", "accelerator: {gpu: {}}\n    purchase: spot\n    max_price_per_hour: 0.01")

    result = relaunch("apply", str(file))

    assert result.exit_code == 0
    assert "nothing right now" in result.stdout


def test_a_family_without_an_active_revision_is_refused(relaunch, file):
    rewrite(file, "task_definition: trainer\n    accelerator", "task_definition: missing\n    accelerator")

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    assert result.stderr.startswith(f"{file}:6:3: jobs.bert: the family missing has no ACTIVE revision")


def test_a_container_must_be_named_when_there_are_several(relaunch, stage, file):
    several = make_revision(containers=(make_container(), make_container(name="sidecar", gpu_count=0, memory_mib=128)))
    stage.deps = make_dependencies(jobs=stage.jobs, offerings=stage.offerings, revisions=FakeRevisions(several))

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    assert "jobs.bert: trainer:7 has several containers" in result.stderr
    assert "jobs.resnet" not in result.stderr


@pytest.mark.parametrize(
    ("content", "words"), [(None, "cannot be read: No such file or directory"), (b"\xff\xfe", "is not UTF-8 text")]
)
def test_a_file_that_cannot_be_read_is_refused_in_words(relaunch, tmp_path, content, words):
    path = tmp_path / "other.yaml"
    if content is not None:
        path.write_bytes(content)

    result = relaunch("apply", str(path))

    assert result.exit_code == 2
    assert words in result.stderr


def test_plan_ranks_what_is_kept_and_groups_what_is_not(relaunch):
    result = relaunch("plan", "resnet")

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["#", "TYPE", "PURCHASE", "ZONE", "$/H", "SAVES", "CAPACITY", "PROVIDER"]
    assert lines[2].split() == ["1", "g4dn.xlarge", "spot", "any", "0.1600", "84%", "g4dn-xlarge-spot"]
    assert "Rejected: 1 of 6 offerings" in lines
    assert any(line.startswith("price-cap  6 → 5  p4d.24xlarge on-demand: ") for line in lines)


def test_a_wide_plan_also_shows_the_accelerator(relaunch):
    assert "1x T4 15GiB" in relaunch("plan", "resnet", columns=120).stdout


def test_plan_of_a_file_plans_all_its_definitions_without_registering_them(relaunch, stage, file):
    result = relaunch("plan", str(file), "--json")

    assert [each["definition"] for each in json.loads(result.stdout)["plans"]] == ["resnet", "bert"]
    assert stage.jobs.load_definition("bert") is None


def test_plan_ends_with_4_when_nothing_is_to_be_had(relaunch, stage):
    stage.jobs.save_definition(make_definition(name="dear", max_price_usd_per_hour=0.01))

    result = relaunch("plan", "dear")
    shape = json.loads(relaunch("plan", "dear", "--json").stdout)["plans"][0]

    assert result.exit_code == 4
    assert "price-cap removed the last 6 of 6 offerings" in " ".join(result.stdout.split())
    assert shape["is_satisfiable"] is False
    assert {row["filter"] for row in shape["offerings"]} == {"price-cap"}
    assert [each for each in shape["filters"] if each["before"] and not each["after"]] == [
        {"filter": "price-cap", "before": 6, "after": 0}
    ]


def test_plan_ends_with_3_without_an_active_revision(relaunch, stage):
    stage.jobs.save_definition(make_definition(name="lost", task_definition="missing"))

    result = relaunch("plan", "lost")

    assert result.exit_code == 3
    assert "the family missing has no ACTIVE revision" in result.stdout


def test_an_unknown_definition_names_the_nearest(relaunch):
    result = relaunch("plan", "resnt")

    assert result.exit_code == 3
    assert "did you mean resnet?" in result.stderr


def test_definitions_are_listed_with_what_starts_them(relaunch, stage, file):
    relaunch("apply", str(file))

    result = relaunch("definitions")
    shapes = json.loads(relaunch("definitions", "--json").stdout)["definitions"]

    assert [line.split()[0] for line in result.stdout.splitlines()] == ["DEFINITION", "bert", "resnet"]
    assert "s3://acme/in/*" in result.stdout
    assert [shape["name"] for shape in shapes] == ["bert", "resnet"]
    assert shapes[0]["on"] == [{"s3": {"bucket": "acme", "prefix": "in/", "suffix": ""}}]


def test_an_empty_stack_says_how_to_register(relaunch, stage: Stage):
    stage.jobs.delete_definition("resnet")

    result = relaunch("definitions")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "relaunch apply FILE" in result.stderr


def test_a_share_of_a_gpu_is_registered_with_a_word_on_what_sharing_means(relaunch, file):
    rewrite(file, "gpu: {}", "gpu: {memory: 2GiB, compute_percent: 30}")

    result = relaunch("apply", str(file))
    shape = json.loads(relaunch("apply", str(file), "--json").stdout)

    assert result.exit_code == 0
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["bert"] * 3
    assert "one CUDA process" in result.stderr
    assert "fail together" in result.stderr
    assert [len(each["notices"]) for each in shape["definitions"]] == [0, 3]


def test_the_plan_of_a_share_says_what_sharing_means(relaunch, file):
    rewrite(file, "gpu: {}", "gpu: {memory: 2GiB, compute_percent: 30}")

    result = relaunch("plan", str(file))
    shapes = json.loads(relaunch("plan", str(file), "--json").stdout)["plans"]

    assert result.exit_code == 0
    assert "bert: compute_percent is a limit, not a reservation" in result.stderr
    assert [len(each["notices"]) for each in shapes] == [0, 3]


def test_a_disk_that_nobody_checks_is_said_to_be_so(relaunch, file):
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


class TestImages:
    """What ECR tells of the image of the one container of trainer:7, which asks for x86_64."""

    REJECTED = (
        "its processor is x86_64; the image of container main is for linux/arm64: build it for linux/amd64, or have "
        "the task definition (cpuArchitecture) and the job ask for machines of its architecture"
    )

    @pytest.fixture
    def images(self, stage: Stage) -> FakeImages:
        images = FakeImages()
        stage.deps = replace(stage.deps, images=images)
        return images

    @staticmethod
    def find(images: FakeImages, *platforms: str, unknown: str = "") -> None:
        images.found["trainer", "latest"] = FoundImage("sha256:" + "5e" * 32, platforms, unknown)

    def test_a_definition_whose_image_is_for_no_machine_there_is_is_refused_and_told_what_to_do(
        self, relaunch, stage, file, images
    ):
        self.find(images, "linux/arm64")

        result = relaunch("apply", str(file))

        assert result.exit_code == 4
        first, second = result.stderr.splitlines()[:2]
        assert first.startswith(f"{file}:2:3: jobs.resnet: nothing satisfies this job: image removed the last ")
        assert second.startswith(f"{file}:6:3: jobs.bert: nothing satisfies this job: image removed the last 6 of 6 ")
        assert self.REJECTED in first
        assert self.REJECTED in second
        assert stage.jobs.load_definition("bert") is None

    def test_a_plan_rejects_each_machine_with_that_reason(self, relaunch, file, images):
        self.find(images, "linux/arm64")

        shown = relaunch("plan", str(file), columns=400)
        bert = json.loads(relaunch("plan", str(file), "--json").stdout)["plans"][1]

        assert shown.exit_code == 4
        assert f"g5.xlarge, g6.xlarge, p4d.24xlarge on-demand: {self.REJECTED}" in shown.stdout
        assert {(each["filter"], each["reason"]) for each in bert["offerings"]} == {("image", self.REJECTED)}

    def test_an_image_for_several_platforms_is_no_hindrance_and_no_news(self, relaunch, file, images):
        self.find(images, "linux/amd64", "linux/arm64")

        result = relaunch("apply", str(file))

        assert (result.exit_code, result.stderr) == (0, "")

    def test_an_image_whose_platform_is_not_known_is_no_hindrance_but_a_notice(self, relaunch, file, images):
        self.find(images, unknown="its configuration cannot be loaded: timed out")

        result = relaunch("apply", str(file))

        assert result.exit_code == 0
        assert (
            result.stderr.count("main runs trainer:latest (sha256:5e5e5e5e5e5e), whose platform is not known: its ")
            == 2
        )

    @pytest.mark.parametrize("error", [PermanentError("ECR: AccessDenied"), TransientError("ECR: throttled")])
    def test_a_registry_that_may_not_be_asked_or_does_not_answer_is_a_notice(self, relaunch, file, images, error):
        images.failure = error

        result = relaunch("plan", str(file))

        assert result.exit_code == 0
        assert f"resnet: the platforms of its images are not known: {error}" in result.stderr

    def test_an_image_that_is_not_there_yet_is_a_notice(self, relaunch, file, images):
        images.present.clear()

        result = relaunch("apply", str(file))

        name = "111122223333.dkr.ecr.us-east-1.amazonaws.com/trainer:latest"
        assert result.exit_code == 0
        assert f"bert: the image {name} of container main is not in ECR: a job would fail now" in result.stderr

    @pytest.mark.parametrize(
        "trigger",
        [
            "image: {repository: trainer}",
            "github: {repository: acme/vision, event: push, wait_for_image: {repository: trainer}}",
        ],
    )
    def test_an_image_that_a_trigger_brings_is_not_judged_by_the_one_that_is_there(
        self, relaunch, stage, file, images, trigger
    ):
        self.find(images, "linux/arm64")
        file.write_text(
            f"jobs:\n  bert:\n    task_definition: trainer\n    accelerator: {{gpu: {{}}}}\n    on: [{trigger}]\n",
            encoding="utf-8",
        )

        result = relaunch("apply", str(file))

        assert (result.exit_code, result.stderr) == (0, "")
        assert stage.jobs.load_definition("bert") is not None
