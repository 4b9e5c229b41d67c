"""What checkov is not to look for has a reason, and what it cannot see is looked at here."""

import re

from architecture.written_template import written_template
from fakes.repository import REPOSITORY

TEXT = (REPOSITORY / ".checkov.yaml").read_text(encoding="utf-8")


def test_every_suppression_has_a_reason() -> None:
    skipped = TEXT.partition("skip-check:\n")[2].splitlines()

    assert skipped[0].startswith("  # ")
    assert all(line.startswith("  # ") or re.fullmatch(r"  - CKV_AWS_[0-9]+", line) for line in skipped)


def test_every_queue_is_encrypted_by_sqs() -> None:
    queues = [
        each for each in written_template("template.yaml").resources.values() if each["Type"] == "AWS::SQS::Queue"
    ]

    assert len(queues) > 10
    assert all(each["Properties"]["SqsManagedSseEnabled"] is True for each in queues)
