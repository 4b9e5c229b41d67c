import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fakes.builders import make_definition
from fakes.webhook import load_event
from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    GithubTrigger,
    JobDefinition,
    S3Trigger,
    trigger_origins,
)
from relaunch.core.triggers.events import ObjectCreated
from relaunch.core.triggers.matching import is_watched
from relaunch.core.triggers.upload_rules import (
    MAX_PATTERN_LENGTH,
    ChangedRule,
    FoundRule,
    RuleChange,
    UploadRule,
    compare_rules,
    event_template,
    is_rule_of,
    wanted_rules,
)
from relaunch_local.simulation.aws.event_patterns import matches

PREFIX = "relaunch-relaunch-"


def watching(*triggers: S3Trigger | GithubTrigger | EventBridgeTrigger) -> JobDefinition:
    return make_definition(triggers=triggers)


def rules_for(*triggers: S3Trigger) -> tuple[UploadRule, ...]:
    return wanted_rules([watching(*triggers)], PREFIX)


def keys_of(rule: UploadRule) -> object:
    return json.loads(rule.pattern)["detail"].get("object")


def selects(rules: tuple[UploadRule, ...], bucket: str, key: str) -> bool:
    event = {
        "source": "aws.s3",
        "detail-type": "Object Created",
        "detail": {"bucket": {"name": bucket}, "object": {"key": key}},
    }
    return any(matches(json.loads(rule.pattern), event) for rule in rules)


def test_definitions_without_uploads_need_no_rules() -> None:
    assert wanted_rules([watching(GithubTrigger("acme/vision", "push"))], PREFIX) == ()


def test_a_rule_selects_the_keys_of_all_triggers_of_its_bucket() -> None:
    (rule,) = wanted_rules(
        [
            watching(S3Trigger("acme", prefix="in/"), S3Trigger("acme", suffix=".csv")),
            watching(S3Trigger("acme", "images/", ".manifest"), S3Trigger("acme", prefix="in/")),
        ],
        PREFIX,
    )

    assert rule.bucket == "acme"
    assert json.loads(rule.pattern) == {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": {
            "bucket": {"name": ["acme"]},
            "object": {"key": [{"prefix": "in/"}, {"suffix": ".csv"}, {"wildcard": "images/*.manifest"}]},
        },
    }


def test_each_bucket_has_a_rule_whose_name_stays_as_long_as_its_pattern() -> None:
    first, second = rules_for(S3Trigger("a", "x/"), S3Trigger("b", "x/"))
    (same,) = rules_for(S3Trigger("a", "x/"), S3Trigger("a", "x/y/"))
    (changed,) = rules_for(S3Trigger("a", "y/"))

    assert (first.bucket, second.bucket) == ("a", "b")
    assert same == first
    assert len({first.name, second.name, changed.name}) == 3
    assert all(is_rule_of(PREFIX, each.name) and len(each.name) <= 64 for each in (first, second))


def test_a_rule_named_as_before_patterns_gave_the_names_is_ours() -> None:
    (rule,) = rules_for(S3Trigger("acme", "in/"))
    earlier = FoundRule(f"{PREFIX}z2nmmyw744re", rule.pattern, is_complete=True)

    assert is_rule_of(PREFIX, earlier.name)
    assert compare_rules([rule], [earlier]) == (
        ChangedRule(RuleChange.CREATED, rule),
        ChangedRule(RuleChange.REMOVED, UploadRule(earlier.name, "acme", "")),
    )


def test_a_whole_bucket_needs_no_keys_whatever_else_is_watched_in_it() -> None:
    (rule,) = rules_for(S3Trigger("acme"), S3Trigger("acme", "in/", ".csv"))

    assert keys_of(rule) is None


def test_a_trigger_that_another_one_covers_costs_no_wildcard() -> None:
    (rule,) = rules_for(S3Trigger("acme", "in/"), S3Trigger("acme", "in/deep/", ".csv"))

    assert keys_of(rule) == {"key": [{"prefix": "in/"}]}


def test_checkpoints_beside_the_data_do_not_pass() -> None:
    trigger = S3Trigger("acme", "data/", ".manifest")
    rules = wanted_rules([replace(watching(trigger), checkpoint_uri="s3://acme/checkpoints/")], PREFIX)

    assert selects(rules, "acme", "data/1.manifest")
    assert not selects(rules, "acme", "checkpoints/job/000001/manifest.json")
    assert not selects(rules, "acme", "checkpoints/job/000001/state.bin")


def test_the_event_that_s3_sends_is_selected() -> None:
    event = load_event("aws.s3.object-created")
    bucket, key = event["detail"]["bucket"]["name"], event["detail"]["object"]["key"]
    (rule,) = rules_for(S3Trigger(bucket, key[:3], key[-3:]))

    assert matches(json.loads(rule.pattern), event)
    assert not matches(json.loads(rule.pattern), event | {"detail-type": "Object Deleted"})


@pytest.mark.parametrize(
    ("bucket", "key", "is_selected"),
    [
        ("acme", "in/1.csv", True),
        ("acme", "in/1.json", False),
        ("acme", "out/1.csv", False),
        ("other", "in/1.csv", False),
    ],
)
def test_an_upload_is_watched_if_any_trigger_of_any_definition_selects_it(
    bucket: str, key: str, is_selected: bool
) -> None:
    definitions = [
        watching(GithubTrigger("acme/vision", "push")),
        watching(S3Trigger("a"), S3Trigger("acme", "in/", ".csv")),
    ]

    assert is_watched(ObjectCreated("s3:1", bucket, key), definitions) is is_selected


KEYS = st.text(alphabet="ab/*\\.é", max_size=6)


@example(S3Trigger("acme", "in/x.manifest", ".manifest"), "in/x.manifest")
@example(S3Trigger("acme", "a.", ".b"), "a.b")
@example(S3Trigger("acme", "a", "ab"), "ab")
@example(S3Trigger("acme", "a*\\", "b"), "a*\\b")
@given(st.builds(S3Trigger, st.just("acme"), KEYS, KEYS), KEYS)
def test_exactly_the_watched_keys_are_selected(trigger: S3Trigger, key: str) -> None:
    upload = ObjectCreated("s3:1", "acme", key)

    assert selects(rules_for(trigger), "acme", key) == is_watched(upload, [watching(trigger)])
    assert not selects(rules_for(trigger), "other", key)


def test_too_many_triggers_for_a_pattern_get_several_rules() -> None:
    triggers = [S3Trigger("acme", f"folder-{number:03}/{'x' * 40}/", ".csv") for number in range(100)]
    rules = rules_for(*triggers)

    assert len(rules) > 1
    assert len({rule.name for rule in rules}) == len(rules)
    assert all(len(rule.pattern) <= MAX_PATTERN_LENGTH for rule in rules)
    assert all(selects(rules, "acme", f"{trigger.prefix}1.csv") for trigger in triggers)
    assert not selects(rules, "acme", "folder-100/1.csv")
    assert rules == rules_for(*reversed(triggers))


def filling(length: int, *others: S3Trigger) -> tuple[UploadRule, ...]:
    """Return the rules for these triggers and one as long as makes a single pattern of them so long."""
    (rule,) = rules_for(*others, S3Trigger("acme", "p", ".csv"))
    return rules_for(*others, S3Trigger("acme", "p" * (1 + length - len(rule.pattern)), ".csv"))


def test_a_trigger_that_just_fits_into_a_pattern_selects_no_more_than_it_watches() -> None:
    (fitting,) = filling(MAX_PATTERN_LENGTH)
    (shortened,) = filling(MAX_PATTERN_LENGTH + 1)

    assert len(fitting.pattern) == MAX_PATTERN_LENGTH
    assert fitting.pattern.count(" ") == "Object Created".count(" "), "spaces count as characters too"
    assert not selects((fitting,), "acme", "p" * 1024)
    assert len(shortened.pattern) <= MAX_PATTERN_LENGTH
    assert selects((shortened,), "acme", "p" * 1024)


def test_triggers_that_just_fit_into_a_pattern_together_get_one_rule() -> None:
    other = S3Trigger("acme", "x" * 1024, ".csv")

    assert [len(rule.pattern) for rule in filling(MAX_PATTERN_LENGTH, other)] == [MAX_PATTERN_LENGTH]
    assert len(filling(MAX_PATTERN_LENGTH + 1, other)) == 2


def test_a_letter_counts_as_one_character_in_any_language() -> None:
    (rule,) = rules_for(S3Trigger("acme", "é" * 1024))

    assert keys_of(rule) == {"key": [{"prefix": "é" * 1024}]}


@pytest.mark.parametrize(
    "trigger",
    [S3Trigger("acme", "p" * 1024, "s" * 1024), S3Trigger("acme", "\x01" * 1024)],
)
def test_a_trigger_too_long_for_a_pattern_selects_more_rather_than_less(trigger: S3Trigger) -> None:
    (rule,) = rules_for(trigger)

    assert len(rule.pattern) <= MAX_PATTERN_LENGTH
    assert selects((rule,), "acme", f"{trigger.prefix}-{trigger.suffix}")
    assert not selects((rule,), "acme", "other")


def test_a_suffix_too_long_for_a_pattern_selects_the_bucket() -> None:
    (rule,) = rules_for(S3Trigger("acme", suffix="\x01" * 1024))

    assert keys_of(rule) is None


class TestCompareRules:
    rule = rules_for(S3Trigger("acme", "in/"))[0]
    there = FoundRule(rule.name, json.dumps(json.loads(rule.pattern), indent=2), is_complete=True)

    def test_rules_that_are_there_are_left_alone_however_they_are_written(self) -> None:
        assert compare_rules([self.rule], [self.there]) == ()

    def test_a_missing_rule_is_created(self) -> None:
        assert compare_rules([self.rule], []) == (ChangedRule(RuleChange.CREATED, self.rule),)

    @pytest.mark.parametrize(
        "found",
        [
            replace(there, is_complete=False),
            replace(there, pattern='{"source":["aws.s3"]}'),
            replace(there, pattern=""),
        ],
    )
    def test_a_rule_that_somebody_changed_is_replaced(self, found: FoundRule) -> None:
        assert compare_rules([self.rule], [found]) == (ChangedRule(RuleChange.REPLACED, self.rule),)

    @pytest.mark.parametrize("pattern", ["no JSON", "[" * 2_048])
    def test_a_rule_without_a_trigger_is_removed_after_the_others_are_written(self, pattern: str) -> None:
        old = FoundRule(f"{PREFIX}aaaaaaaaaaaa", rules_for(S3Trigger("old"))[0].pattern, is_complete=True)
        odd = FoundRule(f"{PREFIX}bbbbbbbbbbbb", pattern, is_complete=True)

        assert compare_rules([self.rule], [old, odd]) == (
            ChangedRule(RuleChange.CREATED, self.rule),
            ChangedRule(RuleChange.REMOVED, UploadRule(old.name, "old", "")),
            ChangedRule(RuleChange.REMOVED, UploadRule(odd.name, "", "")),
        )


@pytest.mark.parametrize(
    ("name", "is_ours"),
    [
        ("relaunch-a-abcdefghijkl", True),
        ("relaunch-a-b-abcdefghijkl", False),
        ("relaunch-a-abcdefghijk", False),
        ("relaunch-a-nightly", False),
        ("relaunch-a-abcdefghijk1", False),
    ],
)
def test_rules_of_other_stacks_and_of_people_are_not_ours(name: str, is_ours: bool) -> None:
    assert is_rule_of("relaunch-a-", name) is is_ours


def test_a_pattern_is_one_rule_however_many_definitions_have_it() -> None:
    pattern = '{"detail-type":["Job State Change"],"source":["relaunch.vision"]}'
    trigger = EventBridgeTrigger(pattern)
    other = EventBridgeTrigger(pattern, (("job", "detail.job_id"),))

    (rule,) = wanted_rules([watching(trigger), watching(other)], PREFIX)

    assert (rule.pattern, rule.sources, str(rule)) == (pattern, ("relaunch.vision",), "events of relaunch.vision")
    assert is_rule_of(PREFIX, rule.name)
    # Under the key that its messages have the definitions are found.
    template = json.loads(event_template(rule.name, pattern).replace("<aws.events.event.json>", "{}"))
    assert trigger_origins(watching(trigger)) == {("eventbridge", template.pop("key"))}
    assert template == {"source": "eventbridge", "format": 1, "event": {}}


def test_a_rule_for_uploads_has_no_template() -> None:
    (rule,) = rules_for(S3Trigger("acme"))

    assert event_template(rule.name, rule.pattern) == ""
    assert event_template(rule.name, "somebody's") == ""


def test_the_rule_of_a_pattern_goes_with_its_last_definition() -> None:
    (rule,) = wanted_rules([watching(EventBridgeTrigger('{"source":["com.acme"]}'))], PREFIX)
    found = FoundRule(rule.name, rule.pattern, is_complete=True)

    assert compare_rules([rule], [found]) == ()
    (removed,) = compare_rules([], [found])
    assert (removed.change, str(removed.rule)) == (RuleChange.REMOVED, "events of com.acme")
