"""AWS credentials of a step: those of a role, for the OIDC token of the workflow's job, or those of its environment.

Sources: "OpenID Connect reference", GitHub Docs; AssumeRoleWithWebIdentity, AWS STS API Reference.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

from relaunch_action.errors import ActionError, UnavailableError
from relaunch_action.http_requests import NoResponseError, Request, Response, Send
from relaunch_action.signature import Credentials

AUDIENCE = "sts.amazonaws.com"
_SESSION_SECONDS = 3_600
"""The longest for which every role can be assumed."""
_RENEWED_BEFORE_SECONDS = 600
_LOWEST_SERVER_ERROR = 500
_TOO_MANY_REQUESTS = 429
# STS could not reach GitHub's keys in time; the same request may succeed.
_PASSING_ERRORS = ("IDPCommunicationError", "Throttling", "ThrottlingException", "RequestLimitExceeded")


@dataclass(frozen=True)
class Role:
    """A role to assume, in a region, and the name of the session."""

    arn: str
    region: str
    session_name: str


class RoleCredentials:
    """The credentials of a role, assumed again before they expire; no secret is stored anywhere."""

    def __init__(
        self,
        role: Role,
        environment: Mapping[str, str],
        send: Send,
        clock: Callable[[], float],
        mask: Callable[[str], None],
    ) -> None:
        """Assume the role when credentials are first asked for; `mask` is called with every secret."""
        self._role = role
        self._environment = environment
        self._send = send
        self._clock = clock
        self._mask = mask
        self._current: Credentials | None = None
        self._renewed_at = 0.0

    def __call__(self) -> Credentials:
        """Return credentials that are valid for minutes.

        Raises:
            ActionError: the job gets no token, or STS refuses it; the message says what to change.
            UnavailableError: GitHub or STS do not answer.
        """
        if self._current is None or self._clock() >= self._renewed_at:
            started = self._clock()
            self._current = self._assume(self._fetch_token())
            self._renewed_at = started + _SESSION_SECONDS - _RENEWED_BEFORE_SECONDS
        return self._current

    def _fetch_token(self) -> str:
        url = self._environment.get("ACTIONS_ID_TOKEN_REQUEST_URL", "")
        bearer = self._environment.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "")
        if not url or not bearer:
            raise ActionError(
                "the workflow's job may not ask for an OIDC token: give it `permissions: {id-token: write}`; a run for "
                "a pull request from a fork never may"
            )
        headers = {"authorization": f"bearer {bearer}", "accept": "application/json"}
        response = _ask(self._send, Request(f"{url}&audience={quote(AUDIENCE)}", headers), "GitHub's OIDC provider")
        try:
            token = json.loads(response.body)["value"]
        except (ValueError, TypeError, KeyError, RecursionError):
            token = None
        if not isinstance(token, str) or not token.isascii():
            raise ActionError(f"GitHub's OIDC provider gave no token: status {response.status}")
        self._mask(token)
        return token

    def _assume(self, token: str) -> Credentials:
        asked = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "RoleArn": self._role.arn,
            "RoleSessionName": self._role.session_name,
            "WebIdentityToken": token,
            "DurationSeconds": str(_SESSION_SECONDS),
        }
        headers = {"content-type": "application/x-www-form-urlencoded"}
        request = Request(_sts_url(self._role.region, self._environment), headers, urlencode(asked).encode())
        response = _ask(self._send, request, "STS")
        fields = _read_fields(response)
        credentials = Credentials(
            fields.get("AccessKeyId", ""), fields.get("SecretAccessKey", ""), fields.get("SessionToken", "")
        )
        if not all((credentials.access_key_id, credentials.secret_access_key, credentials.token)):
            raise self._refusal(fields, response, token)
        self._mask(credentials.secret_access_key)
        self._mask(credentials.token)
        return credentials

    def _refusal(self, fields: Mapping[str, str], response: Response, token: str) -> ActionError:
        code = fields.get("Code", f"status {response.status}")
        said = f"STS did not let this job assume {self._role.arn}: {code}: {fields.get('Message', 'no message')}"
        if code in _PASSING_ERRORS:
            return UnavailableError(said)
        if "audience" in fields.get("Message", "").lower():
            return ActionError(
                f"{said}; GitHub's OIDC provider in that account has to know the audience {AUDIENCE}: aws iam "
                f"add-client-id-to-open-id-connect-provider --client-id {AUDIENCE} --open-id-connect-provider-arn ARN"
            )
        return ActionError(
            f"{said}; the role's trust policy has to allow sts:AssumeRoleWithWebIdentity to GitHub's OIDC provider for "
            f"aud {AUDIENCE} and {_describe_claims(token)}"
        )


def read_credentials(environment: Mapping[str, str]) -> Credentials:
    """Return the credentials that an earlier step has put into the environment.

    Raises:
        ActionError: there are none.
    """
    key = environment.get("AWS_ACCESS_KEY_ID", "")
    secret = environment.get("AWS_SECRET_ACCESS_KEY", "")
    if not key or not secret:
        raise ActionError(
            "there are no AWS credentials: set the input role-to-assume, or let an earlier step sign in to AWS "
            "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN)"
        )
    return Credentials(key, secret, environment.get("AWS_SESSION_TOKEN", ""))


def _ask(send: Send, request: Request, name: str) -> Response:
    try:
        response = send(request)
    except NoResponseError as error:
        raise UnavailableError(f"{name} did not answer: {error}") from error
    if response.status >= _LOWEST_SERVER_ERROR or response.status == _TOO_MANY_REQUESTS:
        raise UnavailableError(f"{name} answered with status {response.status}")
    return response


def _sts_url(region: str, environment: Mapping[str, str]) -> str:
    """Return STS's endpoint in a region, or that of the variables that every AWS SDK reads."""
    given = environment.get("AWS_ENDPOINT_URL_STS") or environment.get("AWS_ENDPOINT_URL")
    return f"{given.rstrip('/')}/" if given else f"https://sts.{region}.amazonaws.com/"


def _read_fields(response: Response) -> Mapping[str, str]:
    """Return the texts of an answer of STS, by the names of their elements."""
    try:
        root = ElementTree.fromstring(response.body)  # noqa: S314 - of AWS, over TLS; the parser loads nothing
    except ElementTree.ParseError:
        return {}
    return {each.tag.rpartition("}")[2]: each.text.strip() for each in root.iter() if each.text and each.text.strip()}


def _describe_claims(token: str) -> str:
    """Return what a trust policy can compare: claims are public, the signature is left out."""
    try:
        payload = token.split(".")[1]
        claims: Any = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, IndexError, RecursionError):
        claims = None
    subject = claims.get("sub") if isinstance(claims, dict) else None
    return f"sub {subject}" if isinstance(subject, str) else "the sub of the token"
