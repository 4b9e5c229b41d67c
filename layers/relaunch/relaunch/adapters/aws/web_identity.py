"""Tokens with which AWS proves to others who calls (GetWebIdentityToken, AWS STS API Reference).

The account has to enable outbound identity federation, and the call goes to a regional endpoint.
"""

from typing import Any

from botocore.exceptions import ClientError

from relaunch.adapters.aws.errors import aws_errors, error_code
from relaunch.ports import PermanentError

# It is used at once; minutes are for clocks that differ.
LIFETIME_SECONDS = 300


class WebIdentity:
    """Issues tokens (JWT) of the caller's role for one audience; `client` is that of STS."""

    def __init__(self, client: Any, audience: str) -> None:
        self._client = client
        self._audience = audience

    def issue_token(self) -> str:
        """Return a new token.

        Raises:
            PermanentError: the account or the role may not issue tokens.
            TransientError: STS is throttling or not reachable.
        """
        with aws_errors("issuing a web identity token"):
            try:
                answer = self._client.get_web_identity_token(
                    Audience=[self._audience], SigningAlgorithm="RS256", DurationSeconds=LIFETIME_SECONDS
                )
            except ClientError as error:
                if error_code(error).startswith("OutboundWebIdentityFederationDisabled"):
                    hint = "enable it for the account (`aws iam enable-outbound-web-identity-federation`)"
                    raise PermanentError(f"outbound web identity federation is disabled: {hint}") from error
                raise
        return str(answer["WebIdentityToken"])
