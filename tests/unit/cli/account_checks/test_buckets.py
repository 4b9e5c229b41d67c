"""What sends the events of triggers to the stack: rules and schedules that are missing or were changed."""

from datetime import timedelta

from relaunch.core.checks import Verdict
from relaunch.core.triggers.schedules import ChangedSchedule, Schedule
from relaunch.core.triggers.upload_rules import ChangedRule, RuleChange, UploadRule
from relaunch_cli.account_checks.buckets import check_schedules, check_upload_rules

SCHEDULE = Schedule("abc", "rate(1 hour)", "UTC", timedelta(hours=1))


def test_rules_that_are_missing_are_named_by_what_they_select():
    changes = [
        ChangedRule(RuleChange.CREATED, UploadRule("a", "acme", "{}")),
        ChangedRule(RuleChange.REPLACED, UploadRule("b", "", "{}", ("com.acme", "relaunch.b"))),
        ChangedRule(RuleChange.REMOVED, UploadRule("c", "old", "")),
    ]

    (check,) = check_upload_rules(changes)

    assert check.text == (
        "2 missing or changed, for uploads to acme and events of com.acme, relaunch.b: they start no job"
    )
    assert [each.verdict for each in check_upload_rules(changes[2:])] == [Verdict.OK]


def test_schedules_that_are_missing_are_named():
    (check,) = check_schedules([ChangedSchedule(RuleChange.CREATED, SCHEDULE)])
    (well,) = check_schedules([ChangedSchedule(RuleChange.REMOVED, SCHEDULE)])

    assert check.text == "missing or changed: rate(1 hour) UTC; their times start no job"
    assert well.verdict is Verdict.OK
