"""ECR's reading actions over a set of images."""

from dataclasses import dataclass, field
from typing import Any

_INDEX = '{"manifests": [{"digest": "sha256:1", "platform": {"os": "linux", "architecture": "amd64"}}]}'


@dataclass(frozen=True, slots=True)
class ModelEcr:
    """ECR's BatchGetImage over a set of images for x86_64."""

    digests: dict[tuple[str, str], str] = field(default_factory=dict)

    def batch_get_image(self, **parameters: Any) -> Any:
        """BatchGetImage of one tag or digest."""
        repository = parameters["repositoryName"]
        asked = parameters["imageIds"][0]
        for (name, tag), digest in self.digests.items():
            if name == repository and (asked.get("imageTag") == tag or asked.get("imageDigest") == digest):
                return {"images": [{"imageId": {"imageDigest": digest}, "imageManifest": _INDEX}], "failures": []}
        return {"images": [], "failures": [{"imageId": asked, "failureCode": "ImageNotFound"}]}
