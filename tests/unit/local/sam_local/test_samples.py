from pathlib import Path
from typing import Any

import pytest

from relaunch_local.repository import REPOSITORY
from relaunch_local.sam_local.samples import FUNCTIONS, is_handled, samples


def test_every_sample_of_an_invocation_is_invoked() -> None:
    kinds = ("function-url.", "sqs.", "job_api.", "schedule.")

    invoked = {file.name for file, _ in samples()}

    assert invoked == {file.name for file in (REPOSITORY / "events").glob("*.json") if file.name.startswith(kinds)}
    assert {function for _, function in samples()} == set(FUNCTIONS.values())


def test_every_function_of_the_template_is_invoked() -> None:
    template = (REPOSITORY / "template.yaml").read_text(encoding="utf-8")

    declared = {name for name in FUNCTIONS.values() if f"  {name}:\n    Type: AWS::Serverless::Function" in template}

    assert declared == set(FUNCTIONS.values())
    assert template.count("Type: AWS::Serverless::Function") == len(declared)


@pytest.mark.parametrize(
    ("sample", "answer", "handled"),
    [
        ("sqs.intake.s3", {"batchItemFailures": []}, True),
        ("sqs.intake.s3", {"batchItemFailures": [{"itemIdentifier": "1"}]}, False),
        ("sqs.intake.s3", {"errorMessage": "no module named relaunch", "errorType": "ImportError"}, False),
        ("function-url.github-push", {"statusCode": 202}, True),
        ("function-url.github-push", {"statusCode": 503}, False),
        ("job_api.show", {"error": {"code": "UnknownJob", "message": "there is no job"}}, True),
        ("schedule.refresh-offerings", {"errorMessage": "not refreshed: instance types"}, True),
        ("schedule.refresh-offerings", {"errorMessage": "not refreshed: instance types, zones"}, False),
    ],
)
def test_an_answer_is_good_when_the_function_did_what_it_was_asked(sample: str, answer: Any, handled: bool) -> None:
    assert is_handled(Path(f"events/{sample}.json"), answer) == handled
