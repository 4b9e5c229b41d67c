"""What a user's CI brings into an account: an image of a commit, and ECR's event of it, which no emulator sends."""

import json
import uuid
from datetime import UTC, datetime

from relaunch_local.stack.emulator import REGION
from relaunch_local.stack.local_world import LocalWorld


def push_image(world: LocalWorld, repository: str, tag: str) -> None:
    """Push what CI would push, an index for this platform, with this tag."""
    media_type = "application/vnd.oci.image.index.v1+json"
    manifest = {
        "schemaVersion": 2,
        "mediaType": media_type,
        "manifests": [{"digest": f"sha256:{'0' * 64}", "platform": {"os": "linux", "architecture": "amd64"}}],
    }
    pushed = world.client("ecr").put_image(
        repositoryName=repository,
        imageTag=tag,
        imageManifest=json.dumps(manifest),
        imageManifestMediaType=media_type,
    )
    account = pushed["image"]["registryId"]
    detail = {
        "repository-name": repository,
        "action-type": "PUSH",
        "result": "SUCCESS",
        "image-digest": pushed["image"]["imageId"]["imageDigest"],
        "image-tag": tag,
    }
    world.publish(
        {
            "version": "0",
            "id": str(uuid.uuid4()),
            "source": "aws.ecr",
            "detail-type": "ECR Image Action",
            "account": account,
            "region": REGION,
            "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "resources": [],
            "detail": detail,
        }
    )
