import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fakes.builders import make_definition
from fakes.upload_rules import FakeUploadRules
from relaunch.core.definitions.definition import JobDefinition, S3Trigger
from relaunch.core.triggers.upload_rules import FoundRule, UploadRule, wanted_rules
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.arrange_upload_rules import (
    EFFECT_SECONDS,
    MAX_PASSES,
    plan_upload_rules,
    settle_upload_rules,
    widen_upload_rules,
)
from relaunch_local.in_memory.definitions import InMemoryDefinitions
from relaunch_local.simulation.aws.event_patterns import matches


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

    pauses = list[float]()
    settle_upload_rules(stored(watching("new"), watching("both")), rules, pauses.append)

    assert EFFECT_SECONDS in pauses
    assert patterns(rules) == needed(watching("new"), watching("both"))
    assert [kind for kind, _ in rules.log] == ["put", "put", "put", "remove"]


def test_the_last_definition_takes_its_rule_with_it() -> None:
    rules = FakeUploadRules()
    settle_upload_rules(stored(watching("acme")), rules, no_pause)

    settle_upload_rules(stored(), rules, lambda _seconds: None)

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


def test_a_rule_that_another_removes_before_ours_is_removed_is_put_first() -> None:
    rules = FakeUploadRules()
    settle_upload_rules(stored(watching("acme", "a/")), rules, no_pause)
    both = [watching("acme", "a/"), watching("acme", "b/")]
    widen_upload_rules(both, rules, no_pause)
    (needed_rule,) = wanted_rules(both, rules.name_prefix)
    by_other = [lambda: rules.remove_rule(needed_rule.name)]

    settle_upload_rules(stored(*both), rules, lambda _seconds: by_other.pop()() if by_other else None)

    assert [kind for kind, _ in rules.log] == ["put", "put", "remove", "put", "remove"]
    assert patterns(rules) == {needed_rule.pattern}


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


class EndedError(Exception):
    """The command ends here, like Ctrl-C."""


@dataclass
class CallByCall(FakeUploadRules):
    """Changes rules by the calls of EventBridge; `on_call` runs before each, and a rule without a target is idle."""

    on_call: Callable[[], None] = lambda: None
    calls: int = 0

    def put_rule(self, rule: UploadRule) -> None:
        known = self.found.get(rule.name)
        self._call()  # PutRule
        self.found[rule.name] = FoundRule(rule.name, rule.pattern, is_complete=known is not None and known.is_complete)
        self._call()  # PutTargets
        self.found[rule.name] = FoundRule(rule.name, rule.pattern, is_complete=True)

    def remove_rule(self, name: str) -> None:
        self._call()  # RemoveTargets
        self.found[name] = replace(self.found[name], is_complete=False)
        self._call()  # DeleteRule
        del self.found[name]

    def _call(self) -> None:
        self.on_call()
        self.calls += 1

    def selects(self, key: str) -> bool:
        event = {
            "source": "aws.s3",
            "detail-type": "Object Created",
            "detail": {"bucket": {"name": "acme"}, "object": {"key": key}},
        }
        return any(rule.is_complete and matches(json.loads(rule.pattern), event) for rule in self.found.values())


@dataclass
class Applied:
    """`relaunch apply` of one definition per prefix, again and again, and whether the uploads it keeps are selected."""

    rules: CallByCall = field(default_factory=CallByCall)
    store: InMemoryDefinitions = field(default_factory=InMemoryDefinitions)

    def apply(self, prefixes: Sequence[str]) -> None:
        definitions = [watching("acme", prefix) for prefix in prefixes]
        widen_upload_rules(definitions, self.rules, lambda _seconds: None)
        names = {each.name for each in definitions}
        for each in self.store.list_definitions():
            if each.name not in names:
                self.store.delete_definition(each.name)
        for each in definitions:
            self.store.save_definition(each)
        settle_upload_rules(self.store, self.rules, lambda _seconds: None)

    def unselected(self, prefixes: Iterable[str]) -> list[str]:
        return [prefix for prefix in prefixes if not self.rules.selects(f"{prefix}1")]

    def change(self, old: Sequence[str], new: Sequence[str], failing: int = 0, error: Exception | None = None) -> int:
        """Apply `old` and then `new`, whose call of the number `failing` fails; return the calls made for `new`."""
        self.apply(old)
        before, kept, errors = self.rules.calls, set(old) & set(new), [error] if error else []

        def on_call() -> None:
            assert self.unselected(kept) == []
            if errors and self.rules.calls - before == failing:
                raise errors.pop()

        self.rules.on_call = on_call
        try:
            self.apply(new)
        except EndedError:
            assert self.unselected(kept) == []
            self.apply(new)
        assert self.unselected(new) == []
        assert patterns(self.rules) == needed(*(watching("acme", prefix) for prefix in new))
        calls = self.rules.calls - before
        self.apply(new)
        assert self.rules.calls - before == calls, "a second apply has nothing to do"
        return calls


TEAMS = [f"team-{number:03}/{'x' * 20}/" for number in range(60)]
FIRST = f"team-/{'x' * 20}/"


def test_prefixes_that_move_to_another_rule_are_watched_throughout() -> None:
    assert Applied().change(TEAMS, [FIRST, *TEAMS]) > 4


@pytest.mark.parametrize("error", [EndedError(), TransientError("throttled")])
@pytest.mark.parametrize(("old", "new"), [(TEAMS, [FIRST, *TEAMS]), ([FIRST, *TEAMS], TEAMS)])
def test_they_are_whatever_call_fails_or_is_the_last(old: list[str], new: list[str], error: Exception) -> None:
    for failing in range(Applied().change(old, new)):
        Applied().change(old, new, failing, error)


LONG_PREFIXES = st.lists(st.sampled_from([f"{letter}{'x' * 500}/" for letter in "abcdefghij"]), unique=True)


@example(TEAMS, [FIRST, *TEAMS], 2)
@given(LONG_PREFIXES, LONG_PREFIXES, st.integers(0, 12))
def test_what_stays_is_watched_throughout_whatever_changes(old: list[str], new: list[str], failing: int) -> None:
    Applied().change(old, new, failing, EndedError())
