"""The name of a stack's jobs table, kept in the user's cache for a while: to ask CloudFormation takes another client.

It is kept for the credentials, the region, the endpoint and the stack that it was asked with, is used to read and never
to write, and no longer than KEPT. A table that is not there, or not for these credentials, is asked for again.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError

from relaunch.adapters.aws.errors import error_code
from relaunch.ports import PortError
from relaunch_cli.errors import DENIED

if TYPE_CHECKING:
    from datetime import date

    import boto3

    from relaunch.core.jobs.cost import CostEntry
    from relaunch.core.jobs.runs import JobRuns
    from relaunch.core.jobs.state import JobSummary
    from relaunch.ports import JobListing

T = TypeVar("T")
KEPT = 900.0
"""Seconds. The table of a stack that others have removed can outlive it, and is read for so long at most."""
_WRONG_TABLE = DENIED | {"ResourceNotFoundException"}


class TableNames:
    """The name of one stack's table; `endpoint` is where its region's table is asked, and `folder` is the cache."""

    def __init__(self, session: "boto3.Session", stack: str, endpoint: str, folder: Path) -> None:
        credentials = session.get_credentials()
        # An access key is of one account for ever. Where keys are new for every process, the SDK knows the account.
        account = getattr(credentials, "account_id", None)  # which botocore-stubs does not know
        who = account or (credentials.access_key if credentials else "")
        self._key = hashlib.sha256(json.dumps([who, session.region_name, endpoint, stack]).encode()).hexdigest()
        self._file = folder / "relaunch" / "tables" / f"{self._key}.json" if who else None

    def load(self) -> str | None:
        """Return the name that is kept, None if there is none, or none that is new enough."""
        if self._file is None:
            return None
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
            is_new = 0 <= time.time() - kept["at"] < KEPT
            return str(kept["table"]) if is_new else None
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def save(self, table: str) -> None:
        """Keep a name, for this user alone; where it cannot be kept it is asked for each time."""
        if self._file is None:
            return
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = self._file.with_suffix(f".{os.getpid()}")
            new.touch(mode=0o600)
            new.write_text(json.dumps({"table": table, "at": time.time()}), encoding="utf-8")
            new.replace(self._file)
            for other in self._file.parent.glob("*.json"):
                if time.time() - other.stat().st_mtime > KEPT:
                    other.unlink()

    def forget(self) -> None:
        """Forget the name."""
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink(missing_ok=True)


class KeptTableListing:
    """Implements JobListing: reads the table whose name is kept, and asks for the name if it is not the right one."""

    def __init__(self, names: TableNames, ask: Callable[[], str], open_table: Callable[[str], "JobListing"]) -> None:
        self._names = names
        self._ask = ask
        self._open = open_table
        kept = names.load()
        self._is_kept = kept is not None
        self._listing = open_table(kept if kept is not None else self._asked())

    def list_jobs(self, limit: int, cursor: str | None = None) -> "tuple[list[JobSummary], str | None]":
        return self._read(lambda listing: listing.list_jobs(limit, cursor))

    def load_open(self, limit: int) -> list[str]:
        return self._read(lambda listing: listing.load_open(limit))

    def load_costs(self, first: "date", last: "date") -> "list[CostEntry]":
        return self._read(lambda listing: listing.load_costs(first, last))

    def load_runs(self, job_id: str) -> "JobRuns | None":
        return self._read(lambda listing: listing.load_runs(job_id))

    def _asked(self) -> str:
        table = self._ask()
        self._names.save(table)
        return table

    def _read(self, read: Callable[["JobListing"], T]) -> T:
        try:
            return read(self._listing)
        except PortError as error:
            if not self._is_kept or not _is_of_wrong_table(error):
                raise
        self._names.forget()
        self._is_kept = False
        self._listing = self._open(self._asked())
        return read(self._listing)


def _is_of_wrong_table(error: Any) -> bool:
    cause = error.__cause__
    return isinstance(cause, ClientError) and error_code(cause) in _WRONG_TABLE


def cache_folder() -> Path:
    """Return the folder of the user's caches (XDG Base Directory Specification)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
