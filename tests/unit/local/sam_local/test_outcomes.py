"""The table says of every sample of events/ what must come of it, which `make sam-local` checks in containers."""

from relaunch_local.sam_local.outcomes import OUTCOMES
from relaunch_local.sam_local.request_outcomes import REQUESTS
from relaunch_local.sam_local.samples import samples


def test_the_table_has_a_row_for_every_sample_and_no_other() -> None:
    assert set(OUTCOMES) == set(samples())
    assert all(OUTCOMES.values())


def test_no_sample_has_rows_in_both_parts_of_the_table() -> None:
    kinds = ("function-url.", "job_api.", "plan_api.", "sqs.intake.", "sqs.sns.")
    requests = {sample for sample in OUTCOMES if sample.startswith(kinds)}

    assert set(REQUESTS) == requests


def test_what_is_ignored_changes_nothing() -> None:
    ignored = [each for outcomes in OUTCOMES.values() for each in outcomes if each.effect == "ignored"]

    assert ignored
    assert all(each.changes_nothing for each in ignored)
