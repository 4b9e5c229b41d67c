"""Images in ECR."""

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from relaunch.adapters.aws.errors import aws_errors, error_code

if TYPE_CHECKING:
    from mypy_boto3_ecr import ECRClient


class EcrImages:
    """Implements ImageSource over the region's registries: the account's own unless another account's is named."""

    def __init__(self, client: "ECRClient") -> None:
        self._client = client

    def has_image(self, repository: str, tag: str) -> bool:
        return self.digest(repository, tag) is not None

    def digest(self, repository: str, tag: str, account: str | None = None) -> str | None:
        registry: dict[str, Any] = {"registryId": account} if account else {}
        with aws_errors(f"looking for image {repository}:{tag}"):
            try:
                found = self._client.describe_images(
                    repositoryName=repository, imageIds=[{"imageTag": tag}], **registry
                )
            except ClientError as error:
                # A build may make the repository with its first image.
                if error_code(error) in {"ImageNotFoundException", "RepositoryNotFoundException"}:
                    return None
                raise
        return next((detail["imageDigest"] for detail in found["imageDetails"] if "imageDigest" in detail), None)
