"""The credentials of a local world, made anew for each: whoever has them may run commands on this machine."""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Credentials:
    """An access key; the secret is not part of the representation, which tracebacks and logs contain."""

    access_key_id: str
    secret_access_key: str = field(repr=False)


def random_root_credentials() -> Credentials:
    """Return new credentials of the root user, in the form that IAM gives to access keys."""
    name = base64.b32encode(secrets.token_bytes(10)).decode()
    return Credentials(f"AKIA{name}", secrets.token_urlsafe(30))


def function_access_key(function_arn: str, role_arn: str) -> str:
    """Return the access key of a function's execution role."""
    return f"ASIA{hashlib.sha256(f'{function_arn}:{role_arn}'.encode()).hexdigest()[:16].upper()}"


def function_secret(root: Credentials, access_key_id: str) -> str:
    """Return the secret access key of a function.

    It is derived, so that the emulator and the simulator, which are two processes, need only the root user's secret.
    """
    return hmac.new(root.secret_access_key.encode(), access_key_id.encode(), hashlib.sha256).hexdigest()
