"""Texts in Secrets Manager (GetSecretValue, AWS Secrets Manager API Reference)."""

from typing import Any

from relaunch.adapters.aws.errors import aws_errors
from relaunch.ports import PermanentError


class SecretText:
    """A secret that is a text, such as a kubeconfig; `client` is that of Secrets Manager."""

    def __init__(self, client: Any, secret_id: str) -> None:
        self._client = client
        self._secret_id = secret_id

    def read(self) -> str:
        """Return the current value, as it is stored now.

        Raises:
            PermanentError: there is no such secret, it may not be read, or it is not a text.
            TransientError: Secrets Manager is throttling or not reachable.
        """
        doing = f"reading the secret {self._secret_id}"
        with aws_errors(doing):
            text = self._client.get_secret_value(SecretId=self._secret_id).get("SecretString")
        if not text:
            raise PermanentError(f"{doing}: it is not a text: store it as SecretString")
        return str(text)
