"""Deletes the locks that killed compilations leave in Neuron's cache in S3: later ones would wait for them for ever.

Copy it, and call it before the first step:

    clear_stale_locks()

It needs boto3, and does nothing unless NEURON_COMPILE_CACHE_URL is in S3. Jobs that share the cache may compile at the
same time, for which reason `neuron_parallel_compile --command clear-locks` is not for them: it deletes all locks.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime, timedelta, timezone
from threading import Thread
from typing import Any

STALE_SECONDS = 3 * 3600  # the longest compilations that users report take an hour and three quarters
EVERY_SECONDS = 600


def clear_stale_locks(stale_seconds: float = STALE_SECONDS, every_seconds: float = EVERY_SECONDS) -> None:
    """Delete stale locks now and again, in a thread that ends with the program: what is young now is waited for, too.

    Of the processes of a machine the first does so. What fails is printed, and tried again.
    """
    url = os.environ.get("NEURON_COMPILE_CACHE_URL", "")
    if url.startswith("s3://") and os.environ.get("LOCAL_RANK", "0") == "0":
        Thread(target=_clear_again, args=(url, stale_seconds, every_seconds), daemon=True).start()


def _clear_again(url: str, stale_seconds: float, every_seconds: float) -> None:
    while True:
        try:
            for lock in delete_stale_locks(url, stale_seconds):
                print(f"relaunch: deleted {lock}, left by a compilation that was killed", file=sys.stderr, flush=True)
        except Exception as error:  # noqa: BLE001 - no training ends for it
            print(f"relaunch: stale locks of {url} are not deleted: {error}", file=sys.stderr, flush=True)
        time.sleep(every_seconds)


def delete_stale_locks(url: str, stale_seconds: float) -> list[str]:
    """Delete the locks below `s3://bucket/prefix` that are older than that; return their URIs."""
    import boto3  # noqa: PLC0415 - only S3 needs it

    bucket, _, prefix = url[len("s3://") :].partition("/")
    client: Any = boto3.client("s3")
    listed = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix).search("Contents[]")
    before = datetime.now(timezone.utc) - timedelta(seconds=stale_seconds)
    stale = [each["Key"] for each in listed if each and each["Key"].endswith(".lock") and each["LastModified"] < before]
    for key in stale:
        client.delete_object(Bucket=bucket, Key=key)
    return [f"s3://{bucket}/{key}" for key in stale]
