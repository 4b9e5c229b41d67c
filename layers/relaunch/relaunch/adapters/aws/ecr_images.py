"""Images in ECR."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from relaunch.adapters.aws.errors import aws_errors, error_code

if TYPE_CHECKING:
    from mypy_boto3_ecr import ECRClient


class EcrImages:
    """Implements ImageSource over the account's own registry."""

    def __init__(self, client: "ECRClient") -> None:
        self._client = client

    def has_image(self, repository: str, tag: str) -> bool:
        with aws_errors(f"looking for image {repository}:{tag}"):
            try:
                self._client.describe_images(repositoryName=repository, imageIds=[{"imageTag": tag}])
            except ClientError as error:
                # A build may make the repository with its first image.
                if error_code(error) in {"ImageNotFoundException", "RepositoryNotFoundException"}:
                    return False
                raise
        return True
