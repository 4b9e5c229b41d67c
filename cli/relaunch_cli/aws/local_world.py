"""The controls of the local world: faults that its simulator of ECS and EC2 has on demand (docs/testing.md).

Each is a POST to `/_relaunch/<name>` of the endpoint of ECS, JSON in and out, signed like a request to ECS.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session

from relaunch_cli import exit_codes
from relaunch_cli.errors import CREDENTIALS_HINT, CommandError
from relaunch_cli.loopback import is_loopback

if TYPE_CHECKING:
    import boto3

_HINT = "start one with `make local`, and paste the variables that it prints"
# Files of a commit are unpacked meanwhile.
_SECONDS = 60


class LocalControls(Protocol):
    """Controls of the local world."""

    def control(self, name: str, arguments: Mapping[str, object]) -> Any:
        """Call a control; return its answer.

        Raises:
            CommandError: this is no local world, or it refuses.
        """


class LocalWorld:
    """Implements LocalControls at the endpoint of ECS, which must be on loopback: nothing is ever sent to AWS."""

    def __init__(self, session: "boto3.Session") -> None:
        self._session = session

    def control(self, name: str, arguments: Mapping[str, object]) -> Any:
        meta = self._session.client("ecs").meta
        if not is_loopback(meta.endpoint_url):
            raise CommandError(f"this is for the local world, and ECS is at {meta.endpoint_url}", _HINT)
        credentials = self._session.get_credentials()
        if credentials is None:
            raise CommandError("no AWS credentials", CREDENTIALS_HINT, exit_codes.REFUSED)
        url = f"{meta.endpoint_url.rstrip('/')}/_relaunch/{name}"
        request = AWSRequest("POST", url, {"Content-Type": "application/json"}, json.dumps(arguments).encode())
        SigV4Auth(credentials, "ecs", meta.region_name).add_auth(request)
        answer = URLLib3Session(timeout=_SECONDS).send(request.prepare())
        if answer.status_code != 200:
            raise CommandError(f"the local world refuses {name}: {_reason(answer.content)}", "", exit_codes.REFUSED)
        return json.loads(answer.content)


def _reason(body: bytes) -> str:
    try:
        document = json.loads(body)
        return str(document.get("message") or document.get("error"))
    except (ValueError, AttributeError):
        return "it does not know it: is it of another release, or no local world?"
