"""An S3 on loopback (moto's) that can kill a training while it saves."""

import subprocess
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from mypy_boto3_s3 import S3Client

from functional.examples.attempts import PATIENCE_SECONDS, Job


class KillingS3:
    """An S3 that at the given PutObject kills the process that sent it, before or after the object is stored."""

    def __init__(self) -> None:
        self._application = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self._puts_left = 0
        self._store_it = False
        self._victim_known = threading.Event()
        self._victim: subprocess.Popen[str] | None = None

    def kill_at_put(self, number: int, *, store_it: bool) -> None:
        self._puts_left, self._store_it = number, store_it
        self._victim_known.clear()

    def aim_at(self, process: subprocess.Popen[str]) -> None:
        self._victim = process
        self._victim_known.set()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "PUT" or not self._is_the_one():
            return self._application(environ, start_response)  # type: ignore[no-any-return]  # moto is untyped here
        answer = b"".join(self._application(environ, start_response)) if self._store_it else b""
        assert self._victim_known.wait(PATIENCE_SECONDS)
        assert self._victim is not None
        self._victim.kill()
        self._victim.wait(PATIENCE_SECONDS)
        if not self._store_it:
            start_response("503 Service Unavailable", [])
        return [answer]

    def _is_the_one(self) -> bool:
        with self._lock:
            self._puts_left -= 1
            return self._puts_left == 0


@dataclass
class S3World:
    """A job whose checkpoints go to S3, and the S3."""

    job: Job
    server: KillingS3
    client: S3Client

    def keys(self) -> list[str]:
        return [found["Key"] for found in self.client.list_objects_v2(Bucket="checkpoints").get("Contents", [])]
