"""Checkpoints of a training that may be interrupted at any time, as Relaunch reads them: one file to copy.

It needs Python 3.8, and boto3 for `s3://bucket/prefix/` and `oss://bucket/prefix/`; docs/checkpoints.md says more.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import math
import os
import re
import shutil
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Body = bytes | Path
    Files = str | os.PathLike[str] | Mapping[str, bytes | str | os.PathLike[str]] | Callable[[], Any]

MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 4 << 20
MAX_OBJECTS = 20_000
_ATTEMPT = re.compile(r".+/attempt-[0-9]{1,6}/", re.DOTALL)
_STEP = re.compile(r".+/attempt-([0-9]{1,6})/step-([0-9]{1,19})/", re.DOTALL)
_UNSAFE_KEY = re.compile(r"(.*/)?\.{0,2}(/.*)?|manifest\.json", re.DOTALL)
_METRIC = re.compile(r"(?!(step|of|save_seconds)$)[A-Za-z_][A-Za-z0-9_./-]*")


class CheckpointUnusableError(Exception):
    """A checkpoint is incomplete or damaged; the message says which object and how."""


class SaveFailedError(Exception):
    """A checkpoint could not be saved, and may be later: the store is out of reach, or the time was over."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose objects were verified and lie in `folder`; `uri` is where they came from."""

    uri: str
    step: int
    folder: Path
    manifest: dict[str, Any]


@dataclass
class Checkpoints:
    """Saves the checkpoints of a job and finds them again; raises ValueError for a URI of an unknown kind.

    `uri` is that of the attempt, `…/JOB/attempt-N/`; without one nothing is saved. Only the process of `rank` 0 saves
    and prints. `stop_requested` is the first of `signals` that came, else 0; `stopped` is true once that is saved. A
    save is given up `stop_seconds` after the signal: 90 seconds after SIGTERM, or stopTimeout, SIGKILL comes.
    """

    uri: str | None = None
    resume_uri: str | None = None
    job_id: str = "by-hand"
    attempt: int = 1
    rank: int = 0
    stop_seconds: float = 75
    report_seconds: float = 10
    signals: Sequence[int] = (signal.SIGTERM,)
    stop_requested: int = field(default=0, init=False)
    stopped: bool = field(default=False, init=False)
    _replaced: dict[int, Any] = field(default_factory=dict, init=False)
    _pid: int = field(default=0, init=False)
    _stop_at: float = field(default=math.inf, init=False)
    _next_report: float = field(default=-math.inf, init=False)
    _saved_step: int | None = field(default=None, init=False)
    _series: dict[int, list[Any]] = field(default_factory=dict, init=False)
    _failure: SaveFailedError | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.uri = self.uri and _folder(self.uri, _ATTEMPT)
        self.resume_uri = self.resume_uri and _folder(self.resume_uri, _STEP)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ, **options: Any) -> Checkpoints:
        """Take what Relaunch gives a training in RELAUNCH_…, and the RANK that torchrun gives its workers."""
        get = environment.get
        options = {"job_id": get("RELAUNCH_JOB_ID", "by-hand"), "rank": int(get("RANK", "0")), **options}
        attempt = int(get("RELAUNCH_ATTEMPT", "1"))
        return cls(get("RELAUNCH_CHECKPOINT_URI"), get("RELAUNCH_RESUME_URI"), attempt=attempt, **options)

    def __enter__(self) -> Checkpoints:
        self._pid = os.getpid()
        self._replaced = {number: signal.signal(number, self._request_stop) for number in self.signals}
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._replaced.items():
            signal.signal(number, handler)
        if error is None and self._failure is not None and not self.stop_requested:
            raise self._failure

    def _request_stop(self, number: int, _frame: object) -> None:
        if os.getpid() != self._pid:
            # A process that was forked, such as a loader of data: nobody asks it to save, and it has to end.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self._stop_at = min(self._stop_at, time.monotonic() + self.stop_seconds)
        self.stop_requested = self.stop_requested or number

    def resume(self, folder: str | os.PathLike[str], reject: Callable[..., None] | None = None) -> Checkpoint | None:
        """Fetch the newest usable checkpoint into a folder of its own below `folder`; None if there is none.

        The one that Relaunch chose comes first, then those of a listing. `reject` is called with the URI of each that
        is damaged, and the reason; else they are printed. Any other failure is raised: the work may still be there.
        """
        reject = reject or (lambda uri, reason: print(f"relaunch: {uri} cannot be used: {reason}", file=sys.stderr))
        for uri in self._candidates():
            try:
                found = _fetch(uri, Path(folder))
                with suppress(ArithmeticError, KeyError, TypeError, ValueError):
                    said = found.manifest["series"][-1_000:]
                    self._series = {int(n): [int(n), int(at), _finite({"x": x}).get("x")] for n, at, x in said}
                return found  # noqa: TRY300 - the next one is tried after an error alone
            except CheckpointUnusableError as error:  # noqa: PERF203 - each may be
                reject(uri, str(error))
        return None

    def _candidates(self) -> Iterator[str]:
        yield from filter(None, [self.resume_uri])
        jobs = [uri.rsplit("/", depth)[0] for uri, depth in ((self.uri, 2), (self.resume_uri, 3)) if uri]
        for job in dict.fromkeys(jobs):
            yield from (uri for uri in find_complete(job) if uri != self.resume_uri)

    def save(self, step: int, files: Files, *, total_steps: int | None = None, **metrics: Any) -> str | None:
        """Save a checkpoint, the manifest last, and print so; return its URI, None if it was not saved.

        `files` are a folder, a file, bytes and paths by key, or a function that returns them, in `save_seconds`, too.
        A store that is out of reach ends no training; a failed last save is raised at the end of the `with`.
        """
        uri = None
        try:
            if self.uri and self.rank == 0 and step != self._saved_step:
                uri = self._save(step, files, total_steps, self._note(step, metrics))
                self._saved_step = step
                self._failure = None
        except SaveFailedError as error:
            self._failure = error
            print(f"relaunch: the checkpoint of step {step} is not saved: {error}", file=sys.stderr, flush=True)
        # Also if a stop was requested during the save: no step was taken since.
        self.stopped = bool(self.stop_requested)
        return uri

    def _save(self, step: int, files: Files, total_steps: int | None, metrics: dict[str, float]) -> str:
        began = time.monotonic()
        bodies = _bodies(files() if callable(files) else files)
        store = open_store(_folder(f"{self.uri}step-{step:07d}/", _STEP))
        manifest: dict[str, Any] = {"format": 1, "job_id": self.job_id, "attempt": self.attempt, "step": step}
        manifest["objects"] = [{"key": key, **_describe(body)} for key, body in bodies.items()]
        manifest["metrics"] = {name: value for name, value in metrics.items() if name != "loss"}
        known = {"loss": metrics.get("loss"), "total_steps": total_steps, "series": list(self._series.values())}
        manifest.update({name: value for name, value in known.items() if value is not None})
        for key, body in bodies.items():
            store.put(key, body, self._check_time)
        manifest["save_seconds"] = round(time.monotonic() - began, 3)
        manifest["saved_at"] = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
        rendered = json.dumps(manifest, indent=2, allow_nan=False).encode()
        if len(rendered) > MAX_MANIFEST_BYTES:
            raise ValueError(f"the manifest has more than {MAX_MANIFEST_BYTES:,} bytes: save fewer files")
        store.put(MANIFEST, rendered, self._check_time)
        _print_line(step=step, of=total_steps, **metrics, save_seconds=manifest["save_seconds"])
        return store.uri

    def _check_time(self) -> None:
        if time.monotonic() > self._stop_at:
            raise SaveFailedError(f"{self.stop_seconds:g} seconds after the signal to stop it was not complete")

    def report(self, step: int, total_steps: int | None = None, **metrics: Any) -> None:
        """Print how far the training is, once in `report_seconds` and at the end; only then `float` is asked for."""
        if self.rank == 0 and (time.monotonic() >= self._next_report or step == total_steps):
            self._next_report = time.monotonic() + self.report_seconds
            _print_line(step=step, of=total_steps, **self._note(step, metrics))

    def _note(self, step: int, metrics: Mapping[str, Any]) -> dict[str, float]:
        numbers = _finite(metrics)
        self._series[step] = [step, int(time.time()), numbers.get("loss")]
        if len(points := list(self._series.values())) > 1_000:
            del self._series[min(zip(points, points[1:], points[2:]), key=lambda near: near[2][1] - near[0][1])[1][0]]
        return numbers

    def prune(self, keep: int) -> int:
        """Delete what is older than the newest `keep` complete checkpoints of the job; return how many these were."""
        if self.uri is None or self.rank or keep < 1:
            return 0
        store = open_store(self.uri.rsplit("/", 2)[0])
        kept = [uri for _, uri in zip(range(keep), find_complete(store.uri))]
        oldest = _order(kept[-1]) if len(kept) == keep else (0, 0)
        old = [key for key in store.sizes() if (0, 0) < _order(store.uri + key) < oldest]
        # The manifest first: nobody resumes from what has none.
        for key in sorted(old, key=lambda each: not each.endswith(f"/{MANIFEST}")):
            store.delete(key)
        return len({_order(store.uri + key) for key in old})


def find_complete(job_uri: str) -> Iterator[str]:
    """Yield the URIs of a job's complete checkpoints, by step and attempt, the newest first; not verified yet."""
    store = open_store(job_uri)
    sizes = {store.uri + key: size for key, size in store.sizes().items()}
    folders = [key[: -len(MANIFEST)] for key in sizes if key.endswith(f"/{MANIFEST}")]
    for uri in sorted(filter(_STEP.fullmatch, folders), key=_order, reverse=True):
        with suppress(CheckpointUnusableError):
            objects = _read_manifest(open_store(uri))["objects"]
            if all(sizes.get(uri + each["key"]) == each["size"] for each in objects):
                yield uri


def _fetch(uri: str, folder: Path) -> Checkpoint:
    store = open_store(uri)
    target = folder / "-".join(uri.split("/")[-3:-1])
    for described in (manifest := _read_manifest(store))["objects"]:
        path = target / described["key"]
        path.parent.mkdir(parents=True, exist_ok=True)
        # Another process of this machine may have fetched it, or does so now.
        if not path.is_file() or _differs(path, described):
            partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
            with partial.open("wb") as stream:
                store.fetch(described["key"], stream)
            if _differs(partial, described):
                raise CheckpointUnusableError(f"{described} in the manifest is {_describe(partial)} in fact")
            partial.replace(path)
    return Checkpoint(uri, _order(uri)[0], target, manifest)


def _differs(path: Path, described: Mapping[str, Any]) -> bool:
    return any(described.get(name, value) != value for name, value in _describe(path).items())


def _describe(body: Body) -> dict[str, Any]:
    digest = hashlib.sha256()
    with _open(body) as stream:
        for chunk in iter(lambda: stream.read(1 << 20), b""):
            digest.update(chunk)
        return {"size": stream.tell(), "sha256": digest.hexdigest()}


def _open(body: Body) -> BinaryIO:
    return io.BytesIO(body) if isinstance(body, bytes) else body.open("rb")


def _bodies(files: Any) -> dict[str, Body]:
    if not hasattr(files, "items"):
        root = Path(files)
        paths = sorted(each for each in root.rglob("*") if each.is_file()) if root.is_dir() else [root]
        files = {each.relative_to(root if root.is_dir() else root.parent).as_posix(): each for each in paths}
    if not 1 <= len(files) <= MAX_OBJECTS:
        raise ValueError(f"a checkpoint has 1 to {MAX_OBJECTS:,} files, not {len(files):,}: pack them into fewer")
    if unsafe := [key for key in files if _UNSAFE_KEY.fullmatch(key)]:
        raise ValueError(f"{unsafe[0]!r} is no key of an object: it stays within its folder, where {MANIFEST} is taken")
    return {key: body if isinstance(body, bytes) else Path(body) for key, body in files.items()}


def _read_manifest(store: FileStore | S3Store) -> dict[str, Any]:
    store.fetch(MANIFEST, body := io.BytesIO())
    try:
        manifest: dict[str, Any] = json.loads(body.getvalue())
        usable = [type(each["size"]) is int and not _UNSAFE_KEY.fullmatch(each["key"]) for each in manifest["objects"]]
        is_usable = manifest["format"] == 1 and usable and all(usable)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointUnusableError(f"{store.uri}{MANIFEST} cannot be read: {error!r}") from error
    if not is_usable:
        raise CheckpointUnusableError(f"{store.uri}{MANIFEST} is not of format 1, or lists what is no object, or none")
    return manifest


def _finite(metrics: Mapping[str, Any]) -> dict[str, float]:
    if unnamed := [name for name in metrics if not _METRIC.fullmatch(name)]:
        raise ValueError(f"{unnamed[0]!r} is no name of a metric: letters, digits, _ . / -; not step, of")
    numbers = {name: each if type(each) is int else float(each) for name, each in metrics.items() if each is not None}
    return {name: number for name, number in numbers.items() if math.isfinite(number)}


def _print_line(**numbers: float | None) -> None:
    known = [(name, each) for name, each in numbers.items() if each is not None]
    print("relaunch:", *(f"{n}={each if type(each) is int else format(each, '.6g')}" for n, each in known), flush=True)


def _folder(uri: str, form: re.Pattern[str]) -> str:
    if not form.fullmatch(folder := open_store(uri).uri):
        raise ValueError(f"{uri} is not of the form {form.pattern}")
    return folder


def _order(uri: str) -> tuple[int, int]:
    match = _STEP.match(uri)
    return (int(match[2]), int(match[1])) if match else (0, 0)


def open_store(uri: str) -> FileStore | S3Store:
    """Open the store that `uri` names; raises ValueError for one of an unknown kind."""
    folder = uri.rstrip("/") + "/"
    if (match := re.fullmatch(r"(?:s3|oss)://([^/]+)/(.*)|file://(/.*)", folder, re.DOTALL)) is None:
        raise ValueError(f"{uri!r} is neither s3://bucket/prefix/, oss://bucket/prefix/ nor file:///folder/")
    return FileStore(folder, Path(unquote(match[3]))) if match[3] else S3Store(folder, match[1], match[2])


@dataclass(frozen=True)
class FileStore:
    """A folder; an object appears under its name only when it is whole, as in S3."""

    uri: str
    root: Path

    def put(self, key: str, body: Body, check_time: Callable[[], None]) -> None:
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        with _open(body) as source, partial.open("wb") as target:
            for chunk in iter(lambda: source.read(1 << 20), b""):
                check_time()
                target.write(chunk)
        partial.replace(path)

    def fetch(self, key: str, target: BinaryIO) -> None:
        try:
            with (self.root / key).open("rb") as source:
                shutil.copyfileobj(source, target)
        except FileNotFoundError as error:
            raise CheckpointUnusableError(f"{self.uri}{key} is missing") from error

    def sizes(self) -> dict[str, int]:
        files = (path for path in self.root.rglob("*") if path.is_file())
        return {path.relative_to(self.root).as_posix(): path.stat().st_size for path in files}

    def delete(self, key: str) -> None:
        (self.root / key).unlink()


@dataclass(frozen=True)
class S3Store:
    """A prefix of a bucket; region, credentials and AWS_ENDPOINT_URL come from the environment, as boto3 reads them."""

    uri: str
    bucket: str
    prefix: str

    def put(self, key: str, body: Body, check_time: Callable[[], None]) -> None:
        from boto3.s3.transfer import TransferConfig  # noqa: PLC0415 - only S3 needs it
        from botocore import exceptions  # noqa: PLC0415 - as above

        # A callback that raises an error ends a transfer of boto3's own client, not one of the CRT's.
        options: Any = {"Callback": lambda _bytes: check_time(), "Config": TransferConfig()}
        options["Config"].preferred_transfer_client = "classic"
        try:
            check_time()
            with _open(body) as stream:
                s3_client(self.uri[:3]).upload_fileobj(stream, self.bucket, self.prefix + key, **options)
        except Exception as error:
            check_time()
            status = getattr(error, "response", {}).get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if status >= 500 or isinstance(error, (exceptions.ConnectionError, exceptions.HTTPClientError)):
                raise SaveFailedError(f"{self.uri}{key}: {error}") from error
            raise

    def fetch(self, key: str, target: BinaryIO) -> None:
        client = s3_client(self.uri[:3])
        try:
            client.download_fileobj(self.bucket, self.prefix + key, target)
        except client.exceptions.ClientError as error:
            # A role that may list a prefix alone gets 403 for what is missing.
            if error.response["Error"]["Code"] != "404" and key in self.sizes():
                raise
            raise CheckpointUnusableError(f"{self.uri}{key} is missing") from error

    def sizes(self) -> dict[str, int]:
        pages = s3_client(self.uri[:3]).get_paginator("list_objects_v2")
        found = pages.paginate(Bucket=self.bucket, Prefix=self.prefix).search("Contents[]")
        return {each["Key"][len(self.prefix) :]: each["Size"] for each in found if each}

    def delete(self, key: str) -> None:
        s3_client(self.uri[:3]).delete_object(Bucket=self.bucket, Key=self.prefix + key)


@functools.lru_cache(maxsize=None)
def s3_client(scheme: str) -> Any:
    """Make the client once; its time-outs are short because everything must be saved within the stop time-out."""
    import boto3  # noqa: PLC0415 - a quarter of a second that training without S3 need not spend
    from botocore.config import Config  # noqa: PLC0415 - as above

    # Other servers than AWS seldom resolve bucket.host names; OSS takes no others, and has not botocore's checksums.
    elsewhere = {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} & os.environ.keys()
    style = {"oss": "virtual"}.get(scheme, "path" if elsewhere else "auto")
    options: dict[str, Any] = {"connect_timeout": 5, "read_timeout": 20, "s3": {"addressing_style": style}}
    if scheme == "oss":
        options["request_checksum_calculation"] = options["response_checksum_validation"] = "when_required"
    return boto3.client("s3", config=Config(retries={"mode": "standard", "total_max_attempts": 5}, **options))
