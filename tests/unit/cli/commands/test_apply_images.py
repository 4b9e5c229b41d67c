"""apply and plan, with what ECR has of the image of trainer:7's one container, which asks for x86_64."""

from dataclasses import replace

import pytest

from fakes.cli_session import CliSession
from fakes.sources import FakeImages
from relaunch.core.revisions.images import FoundImage
from relaunch.ports import PermanentError, TransientError


class TestImages:
    """What ECR tells of the image of the one container of trainer:7, which asks for x86_64."""

    REJECTED = (
        "its processor is x86_64; the image of container main is for linux/arm64: build it for linux/amd64, or have "
        "the task definition (cpuArchitecture) and the job ask for machines of its architecture"
    )

    @pytest.fixture
    def images(self, session: CliSession) -> FakeImages:
        images = FakeImages()
        session.deps = replace(session.deps, images=images)
        return images

    @staticmethod
    def find(images: FakeImages, *platforms: str, unknown: str = "") -> None:
        images.found["trainer", "latest"] = FoundImage("sha256:" + "5e" * 32, platforms, unknown)

    def test_a_definition_whose_image_runs_on_no_machine_is_refused_with_a_hint(self, relaunch, session, file, images):
        self.find(images, "linux/arm64")

        result = relaunch("apply", str(file))

        assert result.exit_code == 4
        first, second = result.stderr.splitlines()[:2]
        assert f"`relaunch plan {file}` shows every offering and why it was rejected" in result.stderr
        assert first.startswith(f"{file}:2:3: jobs.resnet: nothing satisfies this job: image removed the last ")
        assert second.startswith(f"{file}:7:3: jobs.bert: nothing satisfies this job: image removed the last 6 of 6 ")
        assert self.REJECTED in first
        assert self.REJECTED in second
        assert session.deps.definitions.load_definition("bert") is None

    def test_a_plan_rejects_each_machine_with_that_reason(self, relaunch, file, images):
        self.find(images, "linux/arm64")

        shown = relaunch("plan", str(file))
        bert = relaunch("plan", str(file), "--json").document["plans"][1]

        assert shown.exit_code == 4
        assert f"g5.xlarge, g6.xlarge, p4d.24xlarge on-demand: {self.REJECTED}" in shown.stdout
        assert {(each["filter"], each["reason"]) for each in bert["offerings"]} == {("image", self.REJECTED)}

    def test_an_image_for_several_platforms_is_accepted_without_a_notice(self, relaunch, file, images):
        self.find(images, "linux/amd64", "linux/arm64")

        relaunch("apply", str(file))
        result = relaunch("apply", str(file))

        assert (result.exit_code, result.stderr) == (0, "")

    def test_an_image_whose_platform_is_not_known_is_accepted_with_a_notice(self, relaunch, file, images):
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
        self, relaunch, session, file, images, trigger
    ):
        self.find(images, "linux/arm64")
        file.write_text(
            "jobs:\n  bert:\n    task_definition: trainer\n    checkpoint: s3://acme-checkpoints/\n"
            f"    accelerator: {{gpu: {{}}}}\n    on: [{trigger}]\n",
            encoding="utf-8",
        )

        result = relaunch("apply", str(file))

        assert (result.exit_code, result.stderr) == (0, "")
        assert session.deps.definitions.load_definition("bert") is not None
