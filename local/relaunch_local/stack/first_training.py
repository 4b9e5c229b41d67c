"""What a user's CI and task definition bring into an account after a deployment: an image, a revision, a definition."""

import json
from collections.abc import Mapping

from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.local_world import LocalWorld

IMAGE_TAG = "3f2a9c1"
EXAMPLES = REPOSITORY / "examples"


def push_image(world: LocalWorld, repository: str) -> None:
    """Push what CI would push, an index for this platform, with a tag that no other image ever gets."""
    media_type = "application/vnd.oci.image.index.v1+json"
    manifest = {
        "schemaVersion": 2,
        "mediaType": media_type,
        "manifests": [{"digest": f"sha256:{'0' * 64}", "platform": {"os": "linux", "architecture": "amd64"}}],
    }
    world.client("ecr").put_image(
        repositoryName=repository,
        imageTag=IMAGE_TAG,
        imageManifest=json.dumps(manifest),
        imageManifestMediaType=media_type,
    )


def register_task_definition(world: LocalWorld, training: Mapping[str, str]) -> None:
    """Register the example's task definition with the outputs of the stack of what trainings need."""
    definition = json.loads((EXAMPLES / "task-definition.json").read_text())
    definition |= {"taskRoleArn": training["TaskRoleArn"], "executionRoleArn": training["ExecutionRoleArn"]}
    container = definition["containerDefinitions"][0]
    container["image"] = f"{training['RepositoryUri']}:{IMAGE_TAG}"
    container["logConfiguration"]["options"]["awslogs-group"] = training["LogGroupName"]
    for variable in container["environment"]:
        if variable["name"] == "TRAIN_STEP_DELAY_SECONDS":
            variable["value"] = "0.01"
    world.client("ecs").register_task_definition(**definition)


def definition_text(training: Mapping[str, str]) -> str:
    """Return the example's definition with the buckets of the stack."""
    text = (EXAMPLES / "relaunch.yaml").read_text()
    text = text.replace("relaunch-checkpoints", training["CheckpointBucketName"])
    return text.replace("relaunch-datasets", training["DataBucketName"])
