"""The training of docs/local.md works as it stands: it is interrupted, Relaunch finds what it saved, and it resumes."""

import json
import re
import signal

import pytest

from fakes.aws import aws_in_process, make_client
from fakes.repository import REPOSITORY
from relaunch.adapters.aws.checkpoints import S3Checkpoints

PAGE = (REPOSITORY / "docs" / "local.md").read_text(encoding="utf-8")
BUCKET = "relaunch-checkpoints"


def test_it_saves_on_sigterm_and_resumes_from_what_relaunch_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    steps: list[int] = []
    before = signal.getsignal(signal.SIGTERM)

    def attempt(number: int, stop_at: int) -> None:
        def show(state: dict[str, int], **_: object) -> None:
            steps.append(state["step"])
            if state["step"] == stop_at:
                signal.raise_signal(signal.SIGTERM)

        monkeypatch.setenv("RELAUNCH_CHECKPOINT_URI", f"s3://{BUCKET}/vision/job-1/attempt-{number}/")
        exec(program, {"print": show})  # noqa: S102 - it is our own

    with aws_in_process():
        s3 = make_client("s3")
        s3.create_bucket(Bucket=BUCKET)
        store = S3Checkpoints(s3)
        try:
            attempt(1, stop_at=70)
            saved = store.newest_complete(f"s3://{BUCKET}/vision/", "job-1")
            assert saved == f"s3://{BUCKET}/vision/job-1/attempt-1/step-0000070/"
            monkeypatch.setenv("RELAUNCH_RESUME_URI", saved)
            attempt(2, stop_at=0)
        finally:
            signal.signal(signal.SIGTERM, before)
        last = store.newest_complete(f"s3://{BUCKET}/vision/", "job-1")

        assert steps == list(range(1, 201))
        assert last == f"s3://{BUCKET}/vision/job-1/attempt-2/step-0000200/"
        manifest = s3.get_object(Bucket=BUCKET, Key="vision/job-1/attempt-2/step-0000200/manifest.json")["Body"]
        assert json.load(manifest)["loss"] == pytest.approx(0.98**200)
