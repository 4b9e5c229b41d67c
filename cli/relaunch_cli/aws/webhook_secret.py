"""The stored secrets of the webhook, by GetSecretValue and PutSecretValue."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """The current version of a secret: its text, its ID and when it was stored."""

    text: str
    version_id: str
    stored_at: datetime


class WebhookSecretStore(Protocol):
    """Where the secrets of a stack's webhook are stored; `url` is the webhook's.

    A replaced secret is accepted for `previous_seconds`.
    """

    @property
    def url(self) -> str:
        """Return the URL of the default scope, with a slash at the end."""

    @property
    def previous_seconds(self) -> float:
        """Return how long a replaced secret is accepted."""

    def load(self) -> StoredSecret:
        """Load the current version."""

    def load_previous(self) -> str:
        """Load the text of the version before the current one, empty if there is none."""

    def replace(self, stored: StoredSecret, text: str) -> bool:
        """Store a text in place of a version; return False if another one was stored in its place before."""


class SecretsManagerStore:
    """Implements WebhookSecretStore.

    Secrets Manager has no conditional write. But it refuses another text for a ClientRequestToken that is known
    (PutSecretValue, API reference), and the token of this class follows from the version that is replaced: of two
    commands that read the same version one writes, whichever is later is refused and reads again. A version that is
    stored in another way between the read and the write, as in the console, is not noticed.
    """

    def __init__(self, client: "SecretsManagerClient", secret_id: str, url: str, previous_seconds: float) -> None:
        self._client = client
        self._secret_id = secret_id
        self.url = url
        self.previous_seconds = previous_seconds

    def load(self) -> StoredSecret:
        answer = self._client.get_secret_value(SecretId=self._secret_id)
        return StoredSecret(answer.get("SecretString", ""), answer["VersionId"], answer["CreatedDate"])

    def load_previous(self) -> str:
        try:
            answer = self._client.get_secret_value(SecretId=self._secret_id, VersionStage="AWSPREVIOUS")
        except self._client.exceptions.ResourceNotFoundException:
            return ""
        return answer.get("SecretString", "")

    def replace(self, stored: StoredSecret, text: str) -> bool:
        token = hashlib.sha256(stored.version_id.encode()).hexdigest()
        try:
            self._client.put_secret_value(SecretId=self._secret_id, SecretString=text, ClientRequestToken=token)
        except self._client.exceptions.ResourceExistsException:
            return False
        except (NoConnectionError, HTTPClientError):
            # It may have been stored although no answer came.
            if self.load().text != text:
                raise
        return True
