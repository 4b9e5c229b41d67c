"""Checkpoints of a training that may be interrupted at any time, as Relaunch reads them: one file to copy.

It needs Python 3.8, and boto3 for `s3://bucket/prefix/` and `oss://bucket/prefix/`; docs/checkpoints.md says more.
"""

from __future__ import annotations

import base64
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Body = bytes | Path
    Folder = str | os.PathLike[str]
    Files = Folder | Mapping[str, bytes | Folder] | Callable[[], Any]
    Reject = Callable[[str, str], None]
    Needs = Callable[[Callable[[str], Path]], Iterable[str]]

MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 4 << 20
MAX_OBJECTS = 20_000
_ATTEMPT = re.compile(r".+/attempt-[0-9]{1,6}/", re.DOTALL)
_STEP = re.compile(r".+/attempt-([0-9]{1,6})/step-([0-9]{1,19})/", re.DOTALL)
_UNSAFE_KEY = re.compile(r"(.*/)?\.{0,2}(/.*)?|manifest\.json", re.DOTALL)
_METRIC = re.compile(r"(?!(step|of|save_seconds)$)[A-Za-z_][A-Za-z0-9_./-]*")
_TEMPORARY = re.compile(  # codes of S3, KMS, STS and OSS, and classes of botocore and s3transfer
    "Throttl|SlowDown|TooManyRequests|LimitExceeded|ThroughputExceeded|Timeout|TooSkewed|ExpiredToken|Internal|Aborted"
    "|Unavailable|PriorRequest|IDPCommunication|BadDigest|IncompleteBody|IncompleteRead|ConnectionError|HTTPClientError"
    "|RetrievalError|RetriesExceeded|ResponseParser"
)
_warn_once = functools.lru_cache(maxsize=None)(lambda text: print(f"relaunch: {text}", file=sys.stderr, flush=True))


class CheckpointUnusableError(Exception):
    """A checkpoint is incomplete or damaged; the message says which object and how."""


class SaveFailedError(Exception):
    """A checkpoint could not be saved, and may be later: the store is out of reach, or the time was over."""


class Checkpoint(NamedTuple):
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
    With `gather`, which returns what each process gave to it, by rank (all_gather_object of PyTorch), each saves files
    of its own, and all save and resume the same, or fail; each has to call both. Unless `any_nodes` is true, a
    checkpoint of another number of machines is refused with a ValueError.
    """

    uri: str | None = None
    resume_uri: str | None = None
    job_id: str = "by-hand"
    attempt: int = 1
    rank: int = 0
    nodes: int = 1
    any_nodes: bool = False
    gather: Callable[[Any], list[Any]] | None = None
    stop_seconds: float = 75
    report_seconds: float = 10
    signals: Sequence[int] = (signal.SIGTERM,)
    stop_requested: int = field(default=0, init=False)
    stopped: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.uri = self.uri and self._folder(self.uri, _ATTEMPT)
        self.resume_uri = self.resume_uri and self._folder(self.resume_uri, _STEP)
        self._gather = self.gather or (lambda value: [value])
        self._stop_at = math.inf
        self._signal_by = 0.0
        self._next_report = -math.inf
        self._intact = ""
        self._rejected: set[str] = set()
        self._series: dict[int, list[Any]] = {}
        self._failure: SaveFailedError | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ, **options: Any) -> Checkpoints:
        """Take what Relaunch gives a training in RELAUNCH_…, and the rank that its launcher gives a process."""
        get = environment.get
        # Lightning gives no RANK, and only whether it is 0 counts.
        rank = get("RANK") or int(get("LOCAL_RANK") or 0) + int(get("NODE_RANK") or get("RELAUNCH_NODE_RANK") or 0)
        given = {"job_id": get("RELAUNCH_JOB_ID", "by-hand"), "attempt": int(get("RELAUNCH_ATTEMPT", "1"))}
        options = {**given, "rank": int(rank), "nodes": int(get("RELAUNCH_NODES") or 1), **options}
        return cls(get("RELAUNCH_CHECKPOINT_URI"), get("RELAUNCH_RESUME_URI"), **options)

    def _folder(self, uri: str, form: re.Pattern[str]) -> str:
        if not form.fullmatch(folder := open_store(uri).uri):
            raise ValueError(f"{uri} is not of the form {form.pattern}")
        return folder

    def __enter__(self) -> Checkpoints:
        self._pid = os.getpid()
        self._replaced = {number: signal.signal(number, self.request_stop) for number in self.signals}
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        while time.monotonic() < self._signal_by:  # torchrun hears none after its workers' end, for five minutes
            time.sleep(0.1)
        for number, handler in self._replaced.items():
            signal.signal(number, handler)
        if error is None and self._failure is not None and not self.stop_requested:
            raise self._failure

    def request_stop(self, number: int, _frame: object = None) -> None:
        """Ask for the end as the signal does: it came to another process. The `with` waits 20 seconds for one here."""
        if os.getpid() != self._pid:  # forked, as a loader of data is: nobody asks it to save, and it has to end
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self._signal_by = -1 if _frame else self._signal_by or time.monotonic() + 20
        self._stop_at = min(self._stop_at, time.monotonic() + self.stop_seconds)
        self.stop_requested = self.stop_requested or number

    def resume(self, folder: Folder, reject: Reject | None = None, needs: Needs | None = None) -> Checkpoint | None:
        """Fetch the newest usable checkpoint into a folder of its own below `folder`; None if there is none.

        The one that Relaunch chose comes first, then those of a listing. `reject` is called with the URI of each that
        is damaged, and the reason; else they are printed. Any other failure is raised: the work may still be there.
        `needs` returns the keys that this process needs, instead of all; it gets a function that fetches one of them.
        """
        reject = reject or (lambda uri, reason: print(f"relaunch: {uri} cannot be used: {reason}", file=sys.stderr))
        jobs = [uri.rsplit("/", depth)[0] for uri, depth in ((self.uri, 2), (self.resume_uri, 3)) if uri]
        listed = (uri for job in dict.fromkeys(jobs) for uri in find_complete(job) if uri != self.resume_uri)
        candidates = chain(filter(None, [self.resume_uri]), listed)
        while uri := self._gather(next(candidates, None) if self.rank == 0 or not self.gather else None)[0]:
            try:
                best: Checkpoint = self._together(CheckpointUnusableError, self._fetch, uri, folder, needs)
                with suppress(ArithmeticError, KeyError, TypeError, ValueError):
                    self._series = {int(n): [int(n), int(t), _finite(x)] for n, t, x in best.manifest["series"][-1000:]}
                self._intact = uri
                return best  # noqa: TRY300 - the next one is tried after an error alone
            except CheckpointUnusableError as error:  # noqa: PERF203 - each may be
                self._rejected.add(uri)
                reject(uri, str(error))
        return None

    def _fetch(self, uri: str, folder: Folder, needs: Needs | None) -> Checkpoint:
        manifest = _read_manifest(store := open_store(uri))
        if (of := manifest.get("nodes", 1)) != self.nodes and not self.any_nodes:
            raise ValueError(f"{uri} is of {of} machines, not {self.nodes}: any_nodes=True takes it all the same")
        objects = {each["key"]: each for each in manifest["objects"]}
        target = Path(folder) / "-".join(uri.split("/")[-3:-1])

        def differs(path: Path, described: Mapping[str, Any]) -> bool:
            return any(described.get(name, value) != value for name, value in _describe(path).items())

        def fetch(key: str) -> Path:
            described = objects.get(key, {"size": "absent"})
            if not (path := target / key).is_file() or differs(path, described):
                with _appearing(path) as stream:
                    store.fetch(key, stream)
                    stream.flush()
                    if differs(partial := Path(stream.name), described):
                        raise CheckpointUnusableError(f"{described} in the manifest is {_describe(partial)} in fact")
            return path

        target.parent.mkdir(parents=True, exist_ok=True)
        with target.with_name(f".{target.name}.lock").open("a+") as lock:
            with suppress(ImportError, OSError):  # as on Windows and some shared file systems: each fetches for itself
                import fcntl  # noqa: PLC0415 - as above

                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    fcntl.flock(lock, fcntl.LOCK_SH)  # the first fetches, and the others check side by side
            for key in needs(fetch) if needs else objects:
                fetch(key)
        return Checkpoint(uri, _order(uri)[0], target, manifest)

    def save(self, step: int, files: Files, *, total_steps: int | None = None, **metrics: Any) -> str | None:
        """Save a checkpoint, the manifest last, and print so; return its URI, None if it was not saved.

        `files` are a folder, a file, bytes and paths by key, or a function that returns them, in `save_seconds`, too.
        A store that is out of reach ends no training; a failed last save is raised at the end of the `with`.
        """
        step = int(step)
        uri = None
        try:
            if self.uri and (self.rank == 0 or self.gather) and f"{self.uri}step-{step:07d}/" != self._intact:
                self._intact = uri = self._save(step, files, self._note(step, {**metrics, "total_steps": total_steps}))
                self._failure = None
        except SaveFailedError as error:
            self._failure = error
            print(f"relaunch: the checkpoint of step {step} is not saved: {error}", file=sys.stderr, flush=True)
        self.stopped = bool(self.stop_requested)  # also if that was during the save: no step was taken since
        return uri

    def _save(self, step: int, files: Files, numbers: dict[str, float]) -> str:
        began = time.monotonic()
        bodies = self._bodies(files() if callable(files) else files)
        keys = [key for each in self._gather(list(bodies)) for key in each]
        if not 1 <= len(keys) <= MAX_OBJECTS:
            raise ValueError(f"a checkpoint has 1 to {MAX_OBJECTS:,} files, not {len(keys):,}: pack them into fewer")
        if len(set(keys)) < len(keys):
            raise ValueError("two processes save a file of the same name: put their rank into it")
        store = open_store(self._folder(f"{self.uri}step-{step:07d}/", _STEP))
        manifest: dict[str, Any] = {"format": 1, "job_id": self.job_id, "attempt": self.attempt, "step": step}
        known = {name: numbers[name] for name in ("loss", "total_steps") if name in numbers}
        metrics = {name: number for name, number in numbers.items() if name not in known}
        manifest.update(metrics=metrics, series=list(self._series.values()), **known)
        manifest.update({"nodes": self.nodes} if self.nodes > 1 else {})
        described = self._together(SaveFailedError, self._upload, store, bodies)
        manifest["objects"] = [each for part in self._gather(described) for each in part]
        manifest["save_seconds"] = seconds = round(time.monotonic() - began, 3)
        manifest["saved_at"] = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
        rendered = json.dumps(manifest, indent=2, allow_nan=False).encode()
        if len(rendered) > MAX_MANIFEST_BYTES:
            raise ValueError(f"the manifest has more than {MAX_MANIFEST_BYTES:,} bytes: save fewer files")
        self._together(SaveFailedError, lambda: self.rank or store.put(MANIFEST, rendered, self._check_time))
        self._print_line(step, numbers, save_seconds=seconds)
        return store.uri

    def _bodies(self, files: Any) -> dict[str, Body]:
        if not hasattr(files, "items"):
            root = Path(files)
            paths = sorted(filter(Path.is_file, root.rglob("*"))) if root.is_dir() else [root]
            files = {each.relative_to(root if root.is_dir() else root.parent).as_posix(): each for each in paths}
        if unsafe := [key for key in files if _UNSAFE_KEY.fullmatch(key)]:
            raise ValueError(f"{unsafe[0]!r} is no key of an object: it stays in its folder, where {MANIFEST} is taken")
        return {key: body if isinstance(body, bytes) else Path(body) for key, body in files.items()}

    def _upload(self, store: FileStore | S3Store, bodies: Mapping[str, Body]) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(1) as thread:  # while they are uploaded, which takes as long
            described = thread.submit(lambda: [{"key": k, **_describe(b, self._check_time)} for k, b in bodies.items()])
            for key, body in bodies.items():
                store.put(key, body, self._check_time)
            return described.result()

    def _together(self, failure: type[Exception], work: Callable[..., Any], *given: Any) -> Any:
        """Return what `work` returns; a failure of it in one process is raised in all."""
        try:
            result = work(*given)
        except failure as error:
            result = error
        for reason in filter(None, self._gather(str(result) if isinstance(result, failure) else None)):
            raise result if isinstance(result, failure) else failure(reason)
        return result

    def _check_time(self) -> None:
        if self.stop_requested and time.monotonic() > self._stop_at:
            raise SaveFailedError(f"{self.stop_seconds:g} seconds after the signal to stop it was not complete")

    def report(self, step: int, total_steps: int | None = None, **metrics: Any) -> None:
        """Print how far the training is, once in `report_seconds` and at the end; only then `float` is asked for."""
        if self.rank == 0 and (time.monotonic() >= self._next_report or step == total_steps):
            self._next_report = time.monotonic() + self.report_seconds
            self._print_line(step, self._note(int(step), {**metrics, "total_steps": total_steps}))

    def _note(self, step: int, metrics: Mapping[str, Any]) -> dict[str, float]:
        found = {}
        for given, value in metrics.items():
            name = re.sub("[^A-Za-z0-9_./-]", "_", given)
            if given != (name := name if _METRIC.fullmatch(name) else f"_{name}"):
                _warn_once(f"the metric {given!r} is written as {name}: letters, digits, _ . / -; not step, of")
            try:
                found[name] = _finite(value)
            except (ArithmeticError, RuntimeError, TypeError, ValueError):
                _warn_once(f"the metric {given!r} is left out: its {type(value).__name__} is no number, or too large")
        self._series[step] = [step, int(time.time()), found.get("loss")]
        if len(points := list(self._series.values())) > 1_000:
            del self._series[min(zip(points, points[1:], points[2:]), key=lambda near: near[2][1] - near[0][1])[1][0]]
        return {name: number for name, number in found.items() if number is not None}

    def _print_line(self, step: int, numbers: Mapping[str, float], **more: float) -> None:
        known = {"step": int(step), "of": numbers.get("total_steps"), **numbers, **more, "total_steps": None}.items()
        texts = (f"{n}={each if type(each) is int else format(each, '.6g')}" for n, each in known if each is not None)
        if self.rank == 0:
            print("relaunch:", *texts, flush=True)

    def prune(self, keep: int) -> int:
        """Delete what is older than the newest `keep` complete checkpoints of the job; return how many these were.

        What `resume` rejected is none of these; the one it found, or that was saved last, stays. Once a stop is
        requested, or if the store is out of reach, which is printed, no more is deleted, and 0 is returned.
        """
        if self.uri is None or self.rank or keep < 1 or self.stop_requested:
            return 0
        store = open_store(self.uri.rsplit("/", 2)[0])
        try:
            kept = list(islice((uri for uri in find_complete(store.uri) if uri not in self._rejected), keep))
            oldest = _order(kept[-1]) if len(kept) == keep else (0, 0)
            places = {key: _order(store.uri + key) for key in store.sizes()}
            old = [key for key, at in places.items() if (0, 0) < at < oldest and at != _order(self._intact)]
            old.sort(key=lambda each: not each.endswith(f"/{MANIFEST}"))  # that first: nobody resumes without it
            for first in range(0, len(old), 1_000):
                if self.stop_requested:
                    return 0
                store.delete(old[first : first + 1_000])
        except Exception as error:
            if not _is_temporary(error):
                raise
            print(f"relaunch: old checkpoints are not deleted: {error}", file=sys.stderr, flush=True)
            return 0
        return len({places[key] for key in old})


def find_complete(job_uri: str) -> Iterator[str]:
    """Yield the URIs of a job's complete checkpoints, by step and attempt, the newest first; not verified yet."""
    store = open_store(job_uri)
    sizes = {store.uri + key: size for key, size in store.sizes().items()}
    folders = [key[: -len(MANIFEST)] for key in sizes if key.endswith(f"/{MANIFEST}")]
    for uri in sorted(filter(_STEP.fullmatch, folders), key=_order, reverse=True):
        with suppress(CheckpointUnusableError):
            if all(sizes.get(uri + each["key"]) == each["size"] for each in _read_manifest(open_store(uri))["objects"]):
                yield uri


@contextmanager
def _appearing(path: Path) -> Iterator[BinaryIO]:  # under its name only when it is whole; else nothing is left of it
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.urandom(4).hex()}.partial")
    try:
        with partial.open("wb") as stream:
            yield stream
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _describe(body: Body, check_time: Callable[[], None] = lambda: None) -> dict[str, Any]:
    digest = hashlib.sha256()
    with _open(body) as stream:
        for chunk in iter(lambda: stream.read(1 << 20), b""):
            check_time()
            digest.update(chunk)
        return {"size": stream.tell(), "sha256": digest.hexdigest()}


def _open(body: Body) -> BinaryIO:
    return io.BytesIO(body) if isinstance(body, bytes) else body.open("rb")


def _read_manifest(store: FileStore | S3Store) -> dict[str, Any]:
    store.fetch(MANIFEST, body := io.BytesIO())
    try:
        manifest: dict[str, Any] = json.loads(body.getvalue())
        usable = [type(each["size"]) is int and not _UNSAFE_KEY.fullmatch(each["key"]) for each in manifest["objects"]]
        if manifest["format"] == 1 and usable and all(usable):
            return manifest
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointUnusableError(f"{store.uri}{MANIFEST} cannot be read: {error!r}") from error
    raise CheckpointUnusableError(f"{store.uri}{MANIFEST} is not of format 1, or lists what is no object, or none")


def _finite(value: Any) -> float | None:
    number = int(value) if isinstance(value, Integral) else float("nan" if value is None else value)
    return number if math.isfinite(number) else None


def _is_temporary(error: Exception) -> bool:  # the same request may succeed later, as Relaunch judges its own calls
    response = getattr(error, "response", None) or {}  # which botocore's errors of connections have as None
    names = [response.get("Error", {}).get("Code", ""), *(kind.__name__ for kind in type(error).__mro__)]
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= 500 or status == 429 or any(_TEMPORARY.search(name) for name in names)


def _order(uri: str) -> tuple[int, int]:
    return (int(match[2]), int(match[1])) if (match := _STEP.match(uri)) else (0, 0)


def open_store(uri: str) -> FileStore | S3Store:
    """Open the store that `uri` names; raises ValueError for one of an unknown kind."""
    folder = uri.rstrip("/") + "/"
    if (match := re.fullmatch(r"(?:s3|oss)://([^/]+)/(.*)|file://(/.*)", folder, re.DOTALL)) is None:
        raise ValueError(f"{uri!r} is neither s3://bucket/prefix/, oss://bucket/prefix/ nor file:///folder/")
    return FileStore(folder, Path(unquote(match[3]))) if match[3] else S3Store(folder, match[1], match[2])


class FileStore(NamedTuple):
    """A folder; an object appears under its name only when it is whole, as in S3."""

    uri: str
    root: Path

    def put(self, key: str, body: Body, check_time: Callable[[], None]) -> None:
        with _open(body) as source, _appearing(self.root / key) as target:
            for chunk in iter(lambda: source.read(1 << 20), b""):
                check_time()
                target.write(chunk)
            target.flush()
            os.fsync(target.fileno())
        if key == MANIFEST:  # the names too, in the order in which they were given
            with suppress(OSError):  # some systems sync no folders
                folder = os.open(self.root, os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)

    def fetch(self, key: str, target: BinaryIO) -> None:
        try:
            with (self.root / key).open("rb") as source:
                shutil.copyfileobj(source, target)
        except FileNotFoundError as error:
            raise CheckpointUnusableError(f"{self.uri}{key} is missing") from error

    def sizes(self) -> dict[str, int]:
        return {p.relative_to(self.root).as_posix(): p.stat().st_size for p in self.root.rglob("*") if p.is_file()}

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            (self.root / key).unlink(missing_ok=True)


class S3Store(NamedTuple):
    """A prefix of a bucket; region, credentials and AWS_ENDPOINT_URL come from the environment, as boto3 reads them."""

    uri: str
    bucket: str
    prefix: str

    def put(self, key: str, body: Body, check_time: Callable[[], Any]) -> None:
        from boto3.s3.transfer import TransferConfig  # noqa: PLC0415 - only S3 needs it

        options: Any = {"Callback": lambda _bytes: check_time(), "Config": TransferConfig()}
        options["Config"].preferred_transfer_client = "classic"  # the CRT's goes on when a callback raises an error
        events = s3_client(self.uri[:3]).meta.events  # botocore sends again, for 15 seconds, what a callback ended
        events.register_first("needs-retry.s3", end := lambda caught_exception, **_: caught_exception and check_time())
        try:
            check_time()
            with _open(body) as stream:
                s3_client(self.uri[:3]).upload_fileobj(stream, self.bucket, self.prefix + key, **options)
        except Exception as error:
            if _is_temporary(error):
                raise SaveFailedError(f"{self.uri}{key}: {error}") from error
            raise
        finally:
            events.unregister("needs-retry.s3", end)

    def fetch(self, key: str, target: BinaryIO) -> None:
        client = s3_client(self.uri[:3])
        try:
            client.download_fileobj(self.bucket, self.prefix + key, target)
        except client.exceptions.ClientError as error:  # 403 for what is missing, if the role may list a prefix alone
            if error.response["Error"]["Code"] != "404" and key in self.sizes():
                raise
            raise CheckpointUnusableError(f"{self.uri}{key} is missing") from error

    def sizes(self) -> dict[str, int]:
        hits = s3_client(self.uri[:3]).get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self.prefix)
        return {each["Key"][len(self.prefix) :]: each["Size"] for each in hits.search("Contents[]") if each}

    def delete(self, keys: Sequence[str]) -> None:
        listed = {"Objects": [{"Key": self.prefix + key} for key in keys], "Quiet": True}
        client = s3_client(self.uri[:3])
        for refused in client.delete_objects(Bucket=self.bucket, Delete=listed).get("Errors", []):
            raise client.exceptions.ClientError({"Error": refused}, "DeleteObjects")


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
    client = boto3.client("s3", config=Config(retries={"mode": "standard", "total_max_attempts": 5}, **options))
    if scheme == "oss" or elsewhere:
        client.meta.events.register("before-sign.s3.DeleteObjects", _describe_by_md5)
    return client


def _describe_by_md5(request: Any, **_: Any) -> None:  # DeleteObjects needs one, and not all stores know a newer one
    for name in ("Content-MD5", "x-amz-checksum-crc32", "x-amz-sdk-checksum-algorithm"):
        del request.headers[name]  # botocore before 1.36 sets the first
    request.headers["Content-MD5"] = base64.b64encode(hashlib.md5(request.body).digest()).decode()  # noqa: S324
