"""A fault is counted for the message that is being handled."""

from datetime import UTC, datetime

from relaunch_local.simulation.aws.runtime import Invocation
from relaunch_local.simulation.aws.sqs import Message

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_of_two_messages_with_the_same_text_the_one_that_is_handled_met_the_fault():
    first, second = (Message("AttemptsQueue", number, '{"job_id": "a"}', NOW, 7, receives=1) for number in (94, 95))
    invocation = Invocation(1, "launch_attempt", [first, second])

    invocation.begin(95)
    invocation.disturb(wholly=False)

    assert (first.disturbed_receives, second.disturbed_receives) == (set(), {1})

    invocation.begin(94)
    invocation.disturb(wholly=True)

    assert (first.disturbed_receives, second.disturbed_receives) == ({1}, {1})
