"""The checkpoint from which the next attempt resumes."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fakes.aws import Faults, make_client, refusal, refuse
from relaunch.adapters.aws.checkpoints import S3Checkpoints
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.ports import PermanentError, TransientError
from relaunch_training import Checkpoints, find_complete, s3_client

BUCKET = "acme-checkpoints"
ROOT = f"s3://{BUCKET}/resnet/"
JOB = "resnet-1f2e3d4c"


@pytest.fixture(scope="module")
def client(aws: None) -> Iterator[Any]:
    client = make_client("s3")
    client.create_bucket(Bucket=BUCKET)
    s3_client.cache_clear()
    yield client
    s3_client.cache_clear()


@pytest.fixture
def s3(client: Any) -> Any:
    """The client, with the bucket empty."""
    for found in client.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        client.delete_object(Bucket=BUCKET, Key=found["Key"])
    return client


@pytest.fixture
def checkpoints(s3: Any) -> S3Checkpoints:
    return S3Checkpoints(s3)


def folder(attempt: int, step: int, job: str = JOB) -> str:
    return f"{ROOT}{job}/attempt-{attempt}/step-{step:07d}/"


def save(attempt: int, step: int, job: str = JOB) -> str:
    """Save a checkpoint as the example's training does."""
    objects = {"state.json": b"{}", "weights/0.bin": b"\x00" * (100 + step)}
    saved = Checkpoints(f"{ROOT}{job}/attempt-{attempt}/", attempt=attempt).save(step, objects, loss=0.5)
    assert saved is not None
    return saved


def manifest(objects: object) -> bytes:
    return json.dumps({"format": 1, "objects": objects}).encode()


def delete(s3: Any, uri: str) -> None:
    s3.delete_object(Bucket=BUCKET, Key=uri.removeprefix(f"s3://{BUCKET}/"))


def test_a_job_without_checkpoints_has_none(checkpoints):
    assert checkpoints.newest_complete(ROOT, JOB) is None


def test_the_newest_is_told_with_its_step_and_when_s3_got_the_last_of_it(checkpoints, s3):
    assert checkpoints.newest_saved(ROOT, JOB) is None
    uri = save(3, 200)
    written = s3.head_object(Bucket=BUCKET, Key=uri.removeprefix(f"s3://{BUCKET}/") + "manifest.json")["LastModified"]

    newest = checkpoints.newest_saved(ROOT, JOB)
    assert newest == SavedCheckpoint(uri, 200, 3, written, reported=newest.reported)
    assert (newest.reported.loss, [point.step for point in newest.reported.series]) == (0.5, [200])


def test_the_newest_is_told_with_those_of_its_attempt_before_it(checkpoints, s3):
    uris = {(attempt, step): save(attempt, step) for attempt, step in ((1, 100), (2, 400), (2, 200), (2, 300))}
    delete(s3, uris[2, 300] + "manifest.json")

    newest = checkpoints.newest_saved(ROOT, JOB)

    assert newest.uri == uris[2, 400]
    key = uris[2, 200].removeprefix(f"s3://{BUCKET}/") + "manifest.json"
    assert newest.earlier == ((200, s3.head_object(Bucket=BUCKET, Key=key)["LastModified"]),)


def test_the_highest_step_is_the_newest_whatever_the_attempt_and_is_told_with_those_trained_again(checkpoints, s3):
    save(1, 100)
    newest = save(1, 300)
    for attempt, step in ((2, 150), (3, 200), (3, 250)):
        save(attempt, step)

    saved = checkpoints.newest_saved(ROOT, JOB)

    assert checkpoints.newest_complete(ROOT, JOB) == saved.uri == newest == folder(1, 300)
    assert [step for step, _ in saved.earlier] == [100]
    key = f"{folder(3, 250)}manifest.json".removeprefix(f"s3://{BUCKET}/")
    assert [step for step, _ in saved.retrained] == [200, 250]
    assert saved.retrained[-1][1] == s3.head_object(Bucket=BUCKET, Key=key)["LastModified"]


def test_of_one_step_the_newest_attempts_is_the_newest(checkpoints, s3):
    for attempt in (2, 10, 9):
        save(attempt, 300)
    assert checkpoints.newest_complete(ROOT, JOB) == folder(10, 300)


@pytest.mark.parametrize(
    ("step", "attempt", "expected"),
    [
        (None, 1, (1, 300)),
        (200, None, (2, 200)),
        (200, 1, (1, 200)),
        (100, 2, None),
        (999, None, None),
        (None, 3, None),
        (0, None, None),
    ],
)
def test_certain_ones_leave_out_all_others(checkpoints, s3, step, attempt, expected):
    for saved in ((1, 100), (1, 200), (1, 300), (2, 200), (2, 400)):
        save(*saved)

    found = checkpoints.newest_complete(ROOT, JOB, step=step, attempt=attempt)

    assert found == (folder(*expected) if expected else None)


@pytest.mark.parametrize(
    ("key", "body", "reason"),
    [
        pytest.param("manifest.json", None, None, id="no manifest"),
        ("weights/0.bin", None, "its object 'weights/0.bin' is missing"),
        ("weights/0.bin", b"half", "its object 'weights/0.bin' has 4 bytes instead of 300"),
        ("manifest.json", b"", "its manifest is empty"),
        ("manifest.json", b"{", "its manifest is not JSON: 'Expecting property name"),
        ("manifest.json", b"\xff\xfe", "its manifest is not JSON: "),
        ("manifest.json", b"[]", "its manifest is not a JSON object"),
        ("manifest.json", b"{}", "its manifest has format None, and this release reads 1"),
        ("manifest.json", b'{"format": 2, "objects": []}', "its manifest has format 2"),
        ("manifest.json", b'{"format": true, "objects": []}', "its manifest has format True"),
    ],
)
def test_a_checkpoint_that_is_not_complete_does_not_count_and_the_reason_is_given(checkpoints, s3, key, body, reason):
    save(1, 100)
    uri = save(1, 200) + key
    reasons: list[str] = []
    if body is None:
        delete(s3, uri)
    else:
        s3.put_object(Bucket=BUCKET, Key=uri.removeprefix(f"s3://{BUCKET}/"), Body=body)

    assert checkpoints.newest_complete(ROOT, JOB, on_unusable=reasons.append) == folder(1, 100)
    assert [each.startswith(f"attempt-1/step-0000200 cannot be used: {reason}") for each in reasons] == [True] * bool(
        reason
    )


def test_only_incomplete_checkpoints_are_none(checkpoints, s3):
    delete(s3, save(1, 200) + "state.json")
    assert checkpoints.newest_complete(ROOT, JOB) is None


def test_a_checkpoint_of_another_job_does_not_count_even_if_its_id_starts_alike(checkpoints, s3):
    save(1, 900, job=f"{JOB}5")
    save(1, 800, job="bert-1")
    assert checkpoints.newest_complete(ROOT, JOB) is None


def test_a_manifest_at_an_unexpected_place_does_not_count(checkpoints, s3):
    for place in ("", "attempt-1/", "attempt-1/step-0000900/old/", "step-1/"):
        s3.put_object(Bucket=BUCKET, Key=f"resnet/{JOB}/{place}m", Body=b"x")
        s3.put_object(Bucket=BUCKET, Key=f"resnet/{JOB}/{place}manifest.json", Body=manifest([{"key": "m", "size": 1}]))
    assert checkpoints.newest_complete(ROOT, JOB) is None


@pytest.mark.parametrize("root", [ROOT, ROOT.rstrip("/")])
def test_the_slash_at_the_end_of_the_uri_makes_no_difference(checkpoints, s3, root):
    assert checkpoints.newest_complete(root, JOB) is None
    save(1, 100)
    assert checkpoints.newest_complete(root, JOB) == folder(1, 100)


@pytest.mark.parametrize("root", [f"s3://{BUCKET}/", f"s3://{BUCKET}//a b/ü?#/"])
def test_checkpoints_may_lie_anywhere_in_a_bucket(checkpoints, s3, root):
    prefix = root.removeprefix(f"s3://{BUCKET}/")
    for key, body in {"m": b"x", "manifest.json": manifest([{"key": "m", "size": 1}])}.items():
        s3.put_object(Bucket=BUCKET, Key=f"{prefix}{JOB}/attempt-1/step-0000001/{key}", Body=body)
    assert checkpoints.newest_complete(root, JOB) == f"{root}{JOB}/attempt-1/step-0000001/"


def test_more_objects_than_one_page_lists_are_seen(s3):
    own = make_client("s3")

    def list_two(params: dict[str, Any], **_: Any) -> None:
        params["MaxKeys"] = 2

    own.meta.events.register("provide-client-params.s3.ListObjectsV2", list_two)
    save(1, 100)
    newest = save(2, 200)
    assert S3Checkpoints(own).newest_complete(ROOT, JOB) == newest


def test_it_agrees_with_the_training_about_what_is_complete(checkpoints, s3):
    save(1, 100)
    save(2, 200)
    delete(s3, save(2, 300) + "state.json")
    uri = next(find_complete(f"{ROOT}{JOB}/"))
    assert checkpoints.newest_complete(ROOT, JOB) == uri


def test_a_manifest_that_is_deleted_while_we_look_does_not_count(s3):
    save(1, 100)
    newest = save(1, 200)
    own = make_client("s3")
    faults = Faults(own, "s3", "GetObject")

    def somebody_cleans_up() -> None:
        if faults.sent == 1:
            delete(s3, newest + "manifest.json")

    faults.on_send = somebody_cleans_up
    assert S3Checkpoints(own).newest_complete(ROOT, JOB) == folder(1, 100)


@pytest.mark.parametrize("operation", ["ListObjectsV2", "GetObject"])
def test_a_read_without_an_answer_is_transient(s3, operation):
    save(1, 100)
    own = make_client("s3")
    Faults(own, "s3", operation).before = 1
    with pytest.raises(TransientError, match=f"s3://{BUCKET}/resnet/{JOB}/"):
        S3Checkpoints(own).newest_complete(ROOT, JOB)


def test_a_manifest_that_may_not_be_read_is_permanent_and_not_taken_for_missing(s3):
    save(1, 100)
    own = make_client("s3")
    Faults(own, "s3", "GetObject").on_send = refuse(refusal("AccessDenied"))
    with pytest.raises(PermanentError, match=f"reading {folder(1, 100)}manifest.json: .*AccessDenied"):
        S3Checkpoints(own).newest_complete(ROOT, JOB)


def test_a_bucket_that_is_not_there_is_permanent(checkpoints):
    with pytest.raises(PermanentError, match="NoSuchBucket"):
        checkpoints.newest_complete("s3://no-such-bucket/resnet/", JOB)


@pytest.mark.parametrize("uri", ["", "resnet/", "https://bucket/resnet/", "s3://", "s3://bucket"])
def test_what_is_no_uri_of_s3_is_permanent(checkpoints, uri):
    with pytest.raises(PermanentError, match="no URI of S3"):
        checkpoints.newest_complete(uri, JOB)


def probed(s3: Any, *refused: tuple[str, str]) -> list[str]:
    """Probe with these (operation, error code) refused; return the keys that were read."""
    own, keys = make_client("s3"), []
    for operation, code in refused:
        Faults(own, "s3", operation).on_send = refuse(refusal(code))

    def note(params: dict[str, Any], **_: Any) -> None:
        assert params["Range"] == "bytes=0-0"
        keys.append(params["Key"])

    own.meta.events.register("provide-client-params.s3.GetObject", note)
    S3Checkpoints(own).probe(ROOT, JOB)
    return keys


def test_without_a_manifest_a_key_that_is_not_there_is_probed(s3):
    s3.put_object(Bucket=BUCKET, Key="resnet/bert-1/attempt-1/step-0000100/weights/0.bin", Body=b"secret")
    s3.put_object(Bucket=BUCKET, Key="resnet/bert-1/attempt-1/step-0000100/manifest.json", Body=b"")
    s3.put_object(Bucket=BUCKET, Key="resnet/manifest.json", Body=b"{}")
    assert probed(s3) == [f"resnet/{JOB}/manifest.json"]


def test_the_newest_manifest_of_any_job_is_probed(s3):
    save(1, 300, job="bert-1")
    s3.put_object(Bucket=BUCKET, Key="resnet/adam-1/attempt-1/step-0000100/manifest.json", Body=b"{}")
    listed = s3.list_objects_v2(Bucket=BUCKET)["Contents"]
    # What Neuron's compiler keeps beside the jobs is no checkpoint.
    s3.put_object(Bucket=BUCKET, Key="resnet/neuron-cache/neuronxcc-2.22/MODULE_1+d4/manifest.json", Body=b"{}")
    newest = max((each["LastModified"], each["Key"]) for each in listed if each["Key"].endswith("manifest.json"))[1]
    assert probed(s3) == [newest]


def test_a_manifest_that_is_archived_or_just_deleted_may_be_read(s3):
    save(1, 300)
    for code in ("InvalidObjectState", "NoSuchKey"):
        assert len(probed(s3, ("GetObject", code))) == 1


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("ListObjectsV2", "AccessDenied"),
        ("GetObject", "AccessDenied"),
        ("GetObject", "KMS.DisabledException"),
        ("GetObject", "KMS.NotFoundException"),
    ],
)
def test_a_probe_that_is_refused_is_permanent_and_says_where(s3, operation, code):
    save(1, 300)
    with pytest.raises(PermanentError, match=f"probing s3://{BUCKET}/resnet/: .*{code}"):
        probed(s3, (operation, code))


@pytest.mark.parametrize("operation", ["ListObjectsV2", "GetObject"])
def test_a_probe_that_is_throttled_is_transient(s3, operation):
    with pytest.raises(TransientError):
        probed(s3, (operation, "SlowDown"))


def test_a_probe_of_a_bucket_that_is_not_there_is_permanent(checkpoints):
    with pytest.raises(PermanentError, match="NoSuchBucket"):
        checkpoints.probe("s3://no-such-bucket/resnet/", JOB)
