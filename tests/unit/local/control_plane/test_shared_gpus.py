import base64
import json
from typing import Any

import pytest

from relaunch_local.control_plane.shared_gpus import Denial, JobAdmission, webhook_configuration


def review(limits: dict[str, int]) -> bytes:
    pod = {"containers": [{"name": "main", "resources": {"limits": limits}}]}
    job = {"metadata": {"name": "a"}, "spec": {"template": {"spec": pod}}}
    return json.dumps({"request": {"uid": "1", "object": job}}).encode()


def response(admission: JobAdmission, limits: dict[str, int]) -> dict[str, Any]:
    answered: dict[str, Any] = json.loads(admission.answer("/", review(limits)).body)["response"]
    return answered


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"aliyun.com/gpu-mem": 2, "aliyun.com/gpu-core.percentage": 30}, None),
        ({}, None),
        ({"aliyun.com/gpu-mem": 2, "aliyun.com/gpu-core.percentage": 7}, "multiple of 5"),
        ({"aliyun.com/gpu-core.percentage": 30}, "needs gpu-mem"),
    ],
)
def test_a_job_is_held_to_the_rules_of_ack(limits: dict[str, int], message: str | None) -> None:
    answered = response(JobAdmission(), limits)

    assert (answered["uid"], answered["allowed"]) == ("1", message is None)
    assert message is None or message in answered["status"]["message"]


def test_what_a_test_says_is_denied_once() -> None:
    admission = JobAdmission()
    admission.denials.append(Denial(429, "TooManyRequests", "later"))

    assert response(admission, {})["status"] == {"code": 429, "reason": "TooManyRequests", "message": "later"}
    assert response(admission, {})["allowed"]


def test_the_server_asks_before_each_job_and_trusts_the_authority_alone() -> None:
    (webhook,) = webhook_configuration("https://127.0.0.1:1", "PEM")["webhooks"]

    assert webhook["failurePolicy"] == "Fail"
    assert base64.b64decode(webhook["clientConfig"]["caBundle"]) == b"PEM"
    assert webhook["rules"][0]["operations"] == ["CREATE"]
