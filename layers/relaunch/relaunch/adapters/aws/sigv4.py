"""A minimal AWS client for github_webhook: SendMessage and GetSecretValue with the standard library only.

Importing botocore takes longer than the function's own work. The protocols are AWS JSON 1.0 (SQS) and 1.1 (Secrets
Manager) with Signature Version 4 (AWS Identity and Access Management User Guide, "Create a signed AWS API request").
Imports are kept to a minimum for the cold start: no dataclasses, no typing, no logging.
"""

import hashlib
import hmac
import http.client
import json
import ssl
import time
from collections.abc import Callable, Mapping
from urllib.parse import SplitResult, urlsplit

TIMEOUT_SECONDS = 2.0  # GitHub waits ten seconds; at most three secrets are read and one message is sent
_OPERATIONS = {
    "SendMessage": ("sqs", "AmazonSQS.SendMessage", "application/x-amz-json-1.0"),
    "GetSecretValue": ("secretsmanager", "secretsmanager.GetSecretValue", "application/x-amz-json-1.1"),
}


class AwsCallError(Exception):
    """A request failed; `code` is the AWS error code, empty without a response."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}" if code else message)
        self.code = code


class Credentials:
    """AWS credentials; the session token is empty unless they are temporary."""

    __slots__ = ("access_key_id", "secret_access_key", "session_token")

    def __init__(self, access_key_id: str, secret_access_key: str, session_token: str = "") -> None:
        self.access_key_id = access_key_id
        self.secret_access_key = secret_access_key
        self.session_token = session_token


class AwsClient:
    """Sends messages and reads secrets over persistent connections.

    The environment variables are those of the AWS SDKs: AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
    AWS_SESSION_TOKEN, AWS_CA_BUNDLE, AWS_ENDPOINT_URL and, with precedence, AWS_ENDPOINT_URL_SQS and
    AWS_ENDPOINT_URL_SECRETS_MANAGER. Except for the CA bundle, they are read at each call.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        now: Callable[[], float] = time.time,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._environment = environment
        self._now = now
        self._timeout_seconds = timeout_seconds
        self._connections: dict[tuple[str, str], http.client.HTTPConnection] = {}
        # Created here instead of at the first call: Lambda has more CPU in the initialization phase.
        self._tls = ssl.create_default_context(cafile=environment.get("AWS_CA_BUNDLE") or None)

    def send_message(self, queue_url: str, body: str) -> str:
        """Send a message to a queue and return its ID; a retry may send it twice.

        Raises:
            AwsCallError: the message may not have been sent.
        """
        answer = self._call("SendMessage", {"QueueUrl": queue_url, "MessageBody": body})
        return str(answer.get("MessageId", ""))

    def read_secret(self, secret_id: str, stage: str) -> tuple[str, float] | None:
        """Return the value of a secret with a staging label (AWSCURRENT, AWSPREVIOUS); None if there is none.

        The second value is when it was stored, in seconds since 1970 (CreatedDate of the version), 0 if unknown.

        Raises:
            AwsCallError: the secret could not be read.
        """
        try:
            answer = self._call("GetSecretValue", {"SecretId": secret_id, "VersionStage": stage})
        except AwsCallError as error:
            if error.code == "ResourceNotFoundException":
                return None
            raise
        secret = answer.get("SecretString")
        stored_at = answer.get("CreatedDate")
        if not isinstance(secret, str):
            return None
        return secret, float(stored_at) if isinstance(stored_at, (int, float)) else 0.0

    def close(self) -> None:
        """Close all connections; the next call opens new ones."""
        while self._connections:
            self._connections.popitem()[1].close()

    def _call(self, operation: str, parameters: Mapping[str, str]) -> Mapping[str, object]:
        service, target, content_type = _OPERATIONS[operation]
        url = urlsplit(find_endpoint(self._environment, service))
        headers = {"Content-Type": content_type, "X-Amz-Target": target}
        body = json.dumps(parameters).encode()
        try:
            status, answer = self._post(url, service, headers, body)
            if status >= 500:
                status, answer = self._post(url, service, headers, body)
        except (OSError, http.client.HTTPException) as error:
            raise AwsCallError("", f"{operation} got no answer from {url.netloc}: {error!r}") from error
        return _read_answer(operation, status, answer)

    def _post(self, url: SplitResult, service: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        """Send a request; if a connection from an earlier call fails, retry once with a new one."""
        connection = self._connections.pop((url.scheme, url.netloc), None)
        signed = sign_post(url, service, headers, body, self._signer())
        if connection is not None:
            try:
                return self._exchange(connection, url, signed, body)
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException):
                pass
        return self._exchange(self._connect(url), url, signed, body)

    def _exchange(
        self, connection: http.client.HTTPConnection, url: SplitResult, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, bytes]:
        try:
            connection.request("POST", url.path or "/", body=body, headers=dict(headers))
            response = connection.getresponse()
            answer = response.read()
        except BaseException:
            connection.close()
            raise
        self._connections[url.scheme, url.netloc] = connection
        return response.status, answer

    def _connect(self, url: SplitResult) -> http.client.HTTPConnection:
        host = url.hostname or ""
        if url.scheme == "http":
            return http.client.HTTPConnection(host, url.port, timeout=self._timeout_seconds)
        return http.client.HTTPSConnection(host, url.port, timeout=self._timeout_seconds, context=self._tls)

    def _signer(self) -> tuple[Credentials, str, str]:
        environment = self._environment
        try:
            credentials = Credentials(
                environment["AWS_ACCESS_KEY_ID"],
                environment["AWS_SECRET_ACCESS_KEY"],
                environment.get("AWS_SESSION_TOKEN", ""),
            )
        except KeyError as error:
            raise AwsCallError("", f"{error.args[0]} is not set") from error
        return credentials, _find_region(environment), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._now()))


def find_endpoint(environment: Mapping[str, str], service: str) -> str:
    """Return the endpoint URL of a service (`sqs`, `secretsmanager`), as the SDKs do.

    Raises:
        AwsCallError: no region is set.
    """
    name = {"secretsmanager": "SECRETS_MANAGER"}.get(service, service.upper())
    given = environment.get(f"AWS_ENDPOINT_URL_{name}") or environment.get("AWS_ENDPOINT_URL")
    if given:
        return given
    region = _find_region(environment)
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://{service}.{region}.{suffix}"


def sign_post(
    url: SplitResult,
    service: str,
    headers: Mapping[str, str],
    body: bytes,
    signer: tuple[Credentials, str, str],
) -> dict[str, str]:
    """Return the headers of a signed POST; `signer` is credentials, region and time (20260102T030405Z)."""
    credentials, region, at = signer
    signed = {**headers, "Host": _find_host(url), "X-Amz-Date": at}
    if credentials.session_token:
        signed["X-Amz-Security-Token"] = credentials.session_token
    canonical = sorted((name.lower(), " ".join(value.split())) for name, value in signed.items())
    names = ";".join(name for name, _ in canonical)
    lines = [f"{name}:{value}" for name, value in canonical]
    request = "\n".join(["POST", url.path or "/", "", *lines, "", names, hashlib.sha256(body).hexdigest()])
    scope = f"{at[:8]}/{region}/{service}/aws4_request"
    to_sign = "\n".join(["AWS4-HMAC-SHA256", at, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{credentials.secret_access_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    signed["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return signed


def _find_host(url: SplitResult) -> str:
    host = url.netloc.rpartition("@")[2]
    return host.removesuffix({"http": ":80", "https": ":443"}.get(url.scheme, ""))


def _find_region(environment: Mapping[str, str]) -> str:
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not region:
        raise AwsCallError("", "AWS_REGION is not set")
    return region


def _read_answer(operation: str, status: int, answer: bytes) -> Mapping[str, object]:
    try:
        parsed = json.loads(answer)
    except ValueError:
        parsed = {}
    if not isinstance(parsed, dict):
        parsed = {}
    if status == 200:
        return parsed
    code = str(parsed.get("__type", "")).rpartition("#")[2] or f"HTTP {status}"
    raise AwsCallError(
        code, f"{operation} was refused: {parsed.get('message') or parsed.get('Message') or 'no reason'}"
    )
