from collections.abc import Callable

import pytest

from fakes.builders import make_definition
from fakes.upload_rules import FakeUploadRules
from relaunch.core.definitions.definition import JobDefinition, S3Trigger
from relaunch.core.triggers.upload_rules import UploadRule, wanted_rules
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.arrange_upload_rules import (
    MAX_PASSES,
    plan_upload_rules,
    settle_upload_rules,
    widen_upload_rules,
)
from relaunch_local.in_memory.definitions import InMemoryDefinitions


def watching(bucket: str, prefix: str = "") -> JobDefinition:
    return make_definition(name=f"of-{bucket}-{prefix.strip('/')}", triggers=(S3Trigger(bucket, prefix),))


def stored(*definitions: JobDefinition) -> InMemoryDefinitions:
    store = InMemoryDefinitions()
    for definition in definitions:
        store.save_definition(definition)
    return store


def no_pause(_seconds: float) -> None:
    raise AssertionError("nothing failed")


def fail(error: Exception) -> Callable[[], None]:
    def on_change() -> None:
        raise error

    return on_change


def patterns(rules: FakeUploadRules) -> set[str]:
    return {each.pattern for each in rules.list_rules()}


def needed(*definitions: JobDefinition) -> set[str]:
    return {each.pattern for each in wanted_rules(definitions, "relaunch-relaunch-")}


def test_settling_writes_missing_rules_and_removes_those_nobody_needs() -> None:
    rules = FakeUploadRules()
    settle_upload_rules(stored(watching("old"), watching("both")), rules, no_pause)

    settle_upload_rules(stored(watching("new"), watching("both")), rules, no_pause)

    assert patterns(rules) == needed(watching("new"), watching("both"))
    assert [kind for kind, _ in rules.log] == ["put", "put", "put", "remove"]


def test_the_last_definition_takes_its_rule_with_it() -> None:
    rules = FakeUploadRules()
    settle_upload_rules(stored(watching("acme")), rules, no_pause)

    settle_upload_rules(stored(), rules, no_pause)

    assert rules.list_rules() == []


def test_widening_removes_nothing() -> None:
    rules = FakeUploadRules()
    settle_upload_rules(stored(watching("old")), rules, no_pause)

    widen_upload_rules([watching("acme", "a/"), watching("acme", "b/")], rules, no_pause)

    assert patterns(rules) == needed(watching("old"), watching("acme", "a/"), watching("acme", "b/"))


def test_a_plan_changes_nothing() -> None:
    rules = FakeUploadRules()

    assert [each.change for each in plan_upload_rules([watching("acme")], rules)] == ["created"]
    assert rules.log == []


def test_of_two_who_apply_at_the_same_time_whoever_writes_last_sees_the_definitions_of_both() -> None:
    store, rules = stored(watching("acme", "a/")), FakeUploadRules()

    def other_applies() -> None:
        # Between our reading and our writing the other registers and settles; what we write then is out of date.
        store.save_definition(watching("acme", "b/"))
        settle_upload_rules(store, rules, no_pause)

    rules.on_change = [other_applies]
    settle_upload_rules(store, rules, lambda _seconds: None)

    assert patterns(rules) == needed(watching("acme", "a/"), watching("acme", "b/"))


def test_a_rule_removed_while_another_needs_it_comes_back() -> None:
    store, rules = stored(watching("acme")), FakeUploadRules()
    settle_upload_rules(store, rules, no_pause)
    store.delete_definition("of-acme-")

    rules.on_change = [lambda: store.save_definition(watching("acme"))]
    settle_upload_rules(store, rules, lambda _seconds: None)

    assert patterns(rules) == needed(watching("acme"))


def test_what_fails_for_now_is_tried_again_after_ever_longer_pauses() -> None:
    rules, pauses = FakeUploadRules(), list[float]()
    rules.on_change = [fail(TransientError("ConcurrentModificationException"))] * (MAX_PASSES - 2)

    settle_upload_rules(stored(watching("acme")), rules, pauses.append)

    assert pauses == [0.5, 1.0, 2.0, 4.0]
    assert patterns(rules) == needed(watching("acme"))


def test_what_fails_every_time_is_an_error() -> None:
    rules = FakeUploadRules(failure=TransientError("throttled"))

    with pytest.raises(TransientError, match="throttled"):
        settle_upload_rules(stored(watching("acme")), rules, lambda _seconds: None)


def test_a_refused_rule_is_not_tried_again() -> None:
    rules = FakeUploadRules(on_change=[fail(PermanentError("the event bus is full"))])

    with pytest.raises(PermanentError, match="the event bus is full"):
        widen_upload_rules([watching("acme")], rules, no_pause)


def test_rules_that_somebody_else_keeps_changing_are_an_error() -> None:
    class Overwritten(FakeUploadRules):
        def put_rule(self, rule: UploadRule) -> None:
            super().put_rule(UploadRule(rule.name, rule.bucket, "{}"))

    with pytest.raises(TransientError, match="changed by others 6 times in a row"):
        settle_upload_rules(stored(watching("acme")), Overwritten(), lambda _seconds: None)
