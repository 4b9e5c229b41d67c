"""Rules of triggers: against moto, which keeps rules, and against scripted answers, which fail."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from fakes.aws import Faults, aws_in_process, make_client
from fakes.builders import make_definition
from fakes.scripted_aws import ScriptedAws
from relaunch.adapters.aws.upload_rules import EventBridgeUploadRules
from relaunch.core.definitions.definition import EventBridgeTrigger, S3Trigger
from relaunch.core.triggers.upload_rules import FoundRule, UploadRule, compare_rules, wanted_rules
from relaunch.ports import PermanentError, TransientError

PREFIX = "relaunch-relaunch-"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:uploads"
DEAD_LETTERS = "arn:aws:sqs:us-east-1:123456789012:intake-dead"
RULE = UploadRule(f"{PREFIX}abcdefghijkl", "acme", '{"source":["aws.s3"]}')


@pytest.fixture
def client() -> Iterator[Any]:
    with aws_in_process():
        yield make_client("events")


@pytest.fixture
def rules(client: Any) -> EventBridgeUploadRules:
    return EventBridgeUploadRules(client, PREFIX, QUEUE, DEAD_LETTERS)


@pytest.fixture
def aws() -> ScriptedAws:
    return ScriptedAws("events")


@pytest.fixture
def scripted(aws: ScriptedAws) -> EventBridgeUploadRules:
    return EventBridgeUploadRules(aws.client, PREFIX, QUEUE, DEAD_LETTERS)


class TestRules:
    def test_a_rule_is_found_as_it_was_put(self, rules: EventBridgeUploadRules) -> None:
        rules.put_rule(RULE)
        rules.put_rule(RULE)

        assert rules.list_rules() == [FoundRule(RULE.name, RULE.pattern, is_complete=True)]

    def test_its_events_go_to_the_queue_and_what_cannot_be_delivered_to_the_dead_letters(
        self, rules: EventBridgeUploadRules, client: Any
    ) -> None:
        rules.put_rule(RULE)

        (target,) = client.list_targets_by_rule(Rule=RULE.name)["Targets"]
        assert (target["Arn"], target["DeadLetterConfig"]["Arn"]) == (QUEUE, DEAD_LETTERS)

    def test_an_event_of_a_pattern_comes_with_its_key(self, rules: EventBridgeUploadRules, client: Any) -> None:
        definition = make_definition(triggers=(EventBridgeTrigger('{"source":["com.acme"]}'),))
        (rule,) = wanted_rules([definition], PREFIX)

        rules.put_rule(rule)

        (target,) = client.list_targets_by_rule(Rule=rule.name)["Targets"]
        assert target["InputTransformer"]["InputTemplate"] == (
            f'{{"source":"eventbridge","format":1,"key":"{rule.name[-12:]}","event":<aws.events.event.json>}}'
        )
        assert compare_rules([rule], rules.list_rules()) == ()
        client.put_targets(Rule=rule.name, Targets=[{"Id": "uploads", "Arn": QUEUE}])
        assert [each.is_complete for each in rules.list_rules()] == [False]

    def test_a_rule_is_removed_with_all_its_targets_and_removing_it_again_changes_nothing(
        self, rules: EventBridgeUploadRules, client: Any
    ) -> None:
        rules.put_rule(RULE)
        client.put_targets(Rule=RULE.name, Targets=[{"Id": "other", "Arn": QUEUE}])

        rules.remove_rule(RULE.name)
        rules.remove_rule(RULE.name)

        assert rules.list_rules() == []

    def test_rules_of_others_are_not_listed(self, rules: EventBridgeUploadRules, client: Any) -> None:
        for name in (f"{PREFIX}nightly", f"{PREFIX}b-abcdefghijkl", "nightly"):
            client.put_rule(Name=name, EventPattern=RULE.pattern)

        assert rules.list_rules() == []

    @pytest.mark.parametrize("damage", ["disabled", "target removed", "target changed"])
    def test_a_rule_that_somebody_changed_is_not_complete(
        self, rules: EventBridgeUploadRules, client: Any, damage: str
    ) -> None:
        rules.put_rule(RULE)
        if damage == "disabled":
            client.disable_rule(Name=RULE.name)
        elif damage == "target removed":
            client.remove_targets(Rule=RULE.name, Ids=["uploads"])
        else:
            client.put_targets(Rule=RULE.name, Targets=[{"Id": "uploads", "Arn": f"{QUEUE}-old"}])

        assert [each.is_complete for each in rules.list_rules()] == [False]

    def test_a_pattern_comes_back_as_it_was_put(self, rules: EventBridgeUploadRules) -> None:
        triggers = (S3Trigger("acme", "überblick*/", ".csv"), S3Trigger("acme", 'a"b\\'))
        wanted = wanted_rules([make_definition(triggers=triggers)], PREFIX)
        for rule in wanted:
            rules.put_rule(rule)

        assert compare_rules(wanted, rules.list_rules()) == ()

    @pytest.mark.parametrize("fault", ["before", "after"])
    @pytest.mark.parametrize("operation", ["PutRule", "PutTargets"])
    def test_a_call_that_times_out_is_transient_and_made_good_by_the_next_one(
        self, rules: EventBridgeUploadRules, client: Any, operation: str, fault: str
    ) -> None:
        setattr(Faults(client, "eventbridge", operation), fault, 1)

        with pytest.raises(TransientError):
            rules.put_rule(RULE)
        rules.put_rule(RULE)

        assert [each.is_complete for each in rules.list_rules()] == [True]


class TestFailures:
    @pytest.mark.parametrize(
        ("code", "error", "hint"),
        [
            ("ConcurrentModificationException", TransientError, ""),
            ("ThrottlingException", TransientError, ""),
            ("InternalException", TransientError, ""),
            ("LimitExceededException", PermanentError, "the event bus is full"),
            ("ManagedRuleException", PermanentError, "another AWS service manages the rule"),
            ("InvalidEventPatternException", PermanentError, "EventBridge refuses the pattern"),
            ("AccessDeniedException", PermanentError, "AccessDenied"),
        ],
    )
    def test_a_refusal_says_what_to_do(
        self, aws: ScriptedAws, scripted: EventBridgeUploadRules, code: str, error: type[Exception], hint: str
    ) -> None:
        aws.refuse("PutRule", code, status=500 if code == "InternalException" else 400)

        with pytest.raises(error, match=f"putting rule {RULE.name} for uploads to acme.*{hint}"):
            scripted.put_rule(RULE)

    @pytest.mark.parametrize(
        ("code", "error"),
        [
            ("ConcurrentModificationException", TransientError),
            ("ResourceNotFoundException", TransientError),
            ("InternalFailure", TransientError),
            ("AccessDeniedException", PermanentError),
        ],
    )
    def test_a_target_that_failed_is_an_error_although_the_call_succeeded(
        self, aws: ScriptedAws, scripted: EventBridgeUploadRules, code: str, error: type[Exception]
    ) -> None:
        failed = {"FailedEntryCount": 1, "FailedEntries": [{"TargetId": "uploads", "ErrorCode": code}]}
        aws.answer("PutRule", RuleArn="arn")
        aws.answer("PutTargets", **failed)
        with pytest.raises(error, match=f"the target of rule {RULE.name}: {code}"):
            scripted.put_rule(RULE)

        aws.answer("ListTargetsByRule", Targets=[{"Id": "uploads", "Arn": QUEUE}])
        aws.answer("RemoveTargets", **failed)
        with pytest.raises(error, match=f"the targets of rule {RULE.name}: {code}"):
            scripted.remove_rule(RULE.name)

    def test_a_rule_that_somebody_removes_while_its_target_is_put_is_put_again_later(
        self, aws: ScriptedAws, scripted: EventBridgeUploadRules
    ) -> None:
        aws.answer("PutRule", RuleArn="arn")
        aws.refuse("PutTargets", "ResourceNotFoundException")

        with pytest.raises(TransientError, match="ResourceNotFoundException"):
            scripted.put_rule(RULE)

    def test_a_rule_that_somebody_removes_meanwhile_is_removed(
        self, aws: ScriptedAws, scripted: EventBridgeUploadRules
    ) -> None:
        aws.answer("ListTargetsByRule", Targets=[{"Id": "uploads", "Arn": QUEUE}])
        aws.refuse("RemoveTargets", "ResourceNotFoundException")

        scripted.remove_rule(RULE.name)

        assert aws.sent("DeleteRule") == []

    def test_a_rule_that_somebody_removes_while_it_is_listed_is_not_complete(
        self, aws: ScriptedAws, scripted: EventBridgeUploadRules
    ) -> None:
        aws.answer("ListRules", Rules=[{"Name": RULE.name, "State": "ENABLED"}])
        aws.refuse("ListTargetsByRule", "ResourceNotFoundException")

        assert scripted.list_rules() == [FoundRule(RULE.name, "", is_complete=False)]

    def test_all_pages_are_listed(self, aws: ScriptedAws, scripted: EventBridgeUploadRules) -> None:
        aws.answer("ListRules", Rules=[{"Name": RULE.name}], NextToken="more")
        aws.answer("ListRules", Rules=[{"Name": f"{PREFIX}bbbbbbbbbbbb"}])

        assert [each.name for each in scripted.list_rules()] == [RULE.name, f"{PREFIX}bbbbbbbbbbbb"]

    def test_an_unreachable_service_is_transient(self, aws: ScriptedAws, scripted: EventBridgeUploadRules) -> None:
        aws.fail("ListRules", ConnectTimeoutError(endpoint_url="events"))

        with pytest.raises(TransientError, match="listing the rules of triggers"):
            scripted.list_rules()

    def test_a_stack_with_too_long_a_name_is_told_how_long_it_may_be(self, scripted: EventBridgeUploadRules) -> None:
        rule = UploadRule(f"relaunch-{'x' * 43}-abcdefghijkl", "acme", "{}")

        with pytest.raises(PermanentError, match="a name of at most 42"):
            scripted.put_rule(rule)
