"""Receivers of notices in Parameter Store: one SecureString below the path of the stack for each.

GetParametersByPath answers up to ten at once, and may answer fewer with a NextToken ("GetParametersByPath", AWS Systems
Manager API Reference). A SecureString of the key alias/aws/ssm needs no permission of KMS in the account's own roles.
"""

from collections.abc import Mapping
from typing import Any

from relaunch.adapters.aws.errors import AwsError, aws_errors, error_code

# Ten receivers are one page; a hundred pages that have none are no answer.
_MOST_PAGES = 10
_DESCRIPTION = "A receiver of notices of Relaunch (relaunch notices)"


class SsmReceivers:
    """Implements ReceiverParameters; `path` is `/relaunch/<stack>/notices`, `client` that of SSM."""

    def __init__(self, client: Any, path: str) -> None:
        self._client = client
        self._path = path.rstrip("/")

    def load(self) -> Mapping[str, str]:
        """Return the JSON of each receiver, by its name.

        Raises:
            PermanentError: access is denied.
            TransientError: throttled or unreachable.
        """
        found: dict[str, str] = {}
        more: dict[str, str] = {}
        for _ in range(_MOST_PAGES):
            with aws_errors(f"reading the parameters below {self._path}"):
                page = self._client.get_parameters_by_path(
                    Path=self._path, Recursive=False, WithDecryption=True, MaxResults=10, **more
                )
            found |= {each["Name"].rpartition("/")[2]: each["Value"] for each in page["Parameters"]}
            if not page.get("NextToken"):
                break
            more = {"NextToken": page["NextToken"]}
        return found

    def names(self) -> frozenset[str]:
        """Return the names of the receivers, by DescribeParameters, which shows no values.

        Raises:
            PermanentError: access is denied.
            TransientError: throttled or unreachable.
        """
        of_path = [{"Key": "Path", "Option": "OneLevel", "Values": [self._path]}]
        with aws_errors(f"listing the parameters below {self._path}"):
            pages = self._client.get_paginator("describe_parameters").paginate(ParameterFilters=of_path)
            return frozenset(each["Name"].rpartition("/")[2] for page in pages for each in page["Parameters"])

    def save(self, name: str, text: str, *, is_new: bool) -> bool:
        """Store a receiver; return False if `is_new` and there is one of that name."""
        try:
            with aws_errors(f"writing the parameter {self._path}/{name}"):
                self._client.put_parameter(
                    Name=f"{self._path}/{name}",
                    Value=text,
                    Type="SecureString",
                    Tier="Standard",
                    Overwrite=not is_new,
                    Description=_DESCRIPTION,
                )
        except Exception as error:
            if error_code(_cause(error)) == "ParameterAlreadyExists":
                return False
            raise
        return True

    def delete(self, name: str) -> bool:
        """Delete a receiver; return False if there is none of that name."""
        try:
            with aws_errors(f"deleting the parameter {self._path}/{name}"):
                self._client.delete_parameter(Name=f"{self._path}/{name}")
        except Exception as error:
            if error_code(_cause(error)) == "ParameterNotFound":
                return False
            raise
        return True


def _cause(error: Exception) -> Exception:
    return error.__cause__ if isinstance(error.__cause__, AwsError) else error
