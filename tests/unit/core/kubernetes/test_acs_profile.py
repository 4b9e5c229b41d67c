"""The selectors of `acs-profile`: read, changed and written back with all others as they were."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaunch.core.definitions.kubernetes_workload import ComputeClass
from relaunch.core.kubernetes.acs_profile import (
    NoDefaultDriverError,
    PodSelection,
    ProfileError,
    find_overlaps,
    read_selectors,
    remove_driver,
    set_driver,
)

DRIVER, CLASS, MODEL = (
    f"alibabacloud.com/{each}" for each in ("gpu-driver-version", "compute-class", "gpu-model-series")
)
RESERVED, CLASS_GPU = PodSelection(ComputeClass.GPU_HPN), PodSelection(ComputeClass.GPU)
T4 = PodSelection(ComputeClass.GPU, "T4")
# As it is in the documents.
DOCUMENTED = f"""[
  {{
    "name": "gpu-hpn-driver",
    "objectSelector": {{
      "matchLabels": {{
        "{CLASS}": "gpu-hpn"
      }}
    }},
    "effect": {{
      "labels": {{
        "{DRIVER}": "1.5.0"
      }}
    }}
  }}
]"""
# Written by hand: other spaces, other members, an order of its own.
VSWITCH = (
    '{"effect" : {"annotations": {"network.alibabacloud.com/vswitch-ids": "vsw-\\u0031"}},\t"name":"batch" ,'
    ' "namespaceSelector": {"matchLabels": {"team": "vision"}}}'
)


def selector(pods: PodSelection, driver: str = "", **members: Any) -> str:
    labels = {DRIVER: driver} if driver else {}
    document = {"name": "own", "objectSelector": {"matchLabels": pods.labels}, "effect": {"labels": labels}}
    return json.dumps(document | members)


def test_the_first_driver_is_written_as_in_the_documents():
    assert set_driver("", RESERVED, "1.5.0") == DOCUMENTED
    assert set_driver(" [ ] ", RESERVED, "1.5.0") == DOCUMENTED
    assert set_driver("", T4, "535.161.08").startswith('[\n  {\n    "name": "gpu-t4-driver"')


def test_the_driver_is_read_where_it_is_set():
    (found,) = read_selectors(DOCUMENTED)

    assert (found.name, found.driver) == ("gpu-hpn-driver", "1.5.0")
    assert found.selects(RESERVED)
    assert not found.selects(CLASS_GPU)
    assert DOCUMENTED[found.start : found.end] == DOCUMENTED[4:-2]


def test_a_driver_is_changed_in_its_place():
    assert set_driver(DOCUMENTED, RESERVED, "2.1.0") == DOCUMENTED.replace("1.5.0", "2.1.0")
    assert set_driver(DOCUMENTED, RESERVED, "1.5.0") == DOCUMENTED


def test_other_selectors_are_kept_to_the_byte():
    before = f"\n[ {VSWITCH} ,\n\n\t{selector(T4, '535.161.08')},{VSWITCH}]\n"

    changed = set_driver(before, T4, "570.133.20")
    added = set_driver(before, RESERVED, "1.5.0")

    assert changed.startswith(f"\n[ {VSWITCH} ,\n\n\t{{\n\t  ")
    assert changed.endswith(f"\n\t}},{VSWITCH}]\n")
    assert added == f"{before[:-2]},\n{DOCUMENTED[2:-2].replace(chr(10) + '  ', chr(10)).strip()}]\n"
    assert remove_driver(added, RESERVED) == before
    assert remove_driver(before, T4) == f"\n[ {VSWITCH} ,\n\n\t{VSWITCH}]\n"


def test_what_else_a_selector_does_is_kept():
    both = selector(T4, "535.161.08", effect={"labels": {DRIVER: "535.161.08", "a": "b"}, "annotations": {}}, more=[1])

    (changed,) = json.loads(set_driver(f"[{both}]", T4, "570.133.20"))
    (without,) = json.loads(remove_driver(f"[{both}]", T4))

    assert changed == json.loads(both.replace("535.161.08", "570.133.20"))
    assert without["effect"] == {"labels": {"a": "b"}, "annotations": {}}
    assert without["more"] == [1]


@pytest.mark.parametrize(
    ("entry", "is_found"),
    [
        (selector(T4, "535.161.08"), True),
        (selector(T4, "535.161.08", namespaceSelector={}), True),
        (selector(T4, "535.161.08", namespaceSelector={"matchLabels": {"team": "vision"}}), False),
        (selector(T4), False),
        (selector(CLASS_GPU, "535.161.08"), False),
        (selector(T4, "535.161.08", objectSelector={"matchLabels": T4.labels, "matchExpressions": []}), False),
        (selector(T4, effect="none", objectSelector=None), False),
    ],
    ids=["it", "all namespaces", "one namespace", "no driver", "the class", "more than labels", "nothing"],
)
def test_the_selector_of_exactly_these_pods_is_the_one_that_is_changed(entry, is_found):
    text = f"[{entry}]"

    assert len(json.loads(set_driver(text, T4, "570.133.20"))) == (1 if is_found else 2)
    if is_found:
        assert remove_driver(text, T4) == ""
    else:
        with pytest.raises(NoDefaultDriverError, match="no selector sets a driver for exactly these pods"):
            remove_driver(text, T4)


def test_the_last_selector_goes_with_the_comma_before_it():
    before = f"[{VSWITCH}, {selector(T4, '535.161.08')} ]"

    assert remove_driver(before, T4) == f"[{VSWITCH} ]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[{]", "it is no JSON: Expecting property name enclosed in double quotes in line 1, column 3"),
        ('[{"name": "a"}\n{}]', "it is no JSON: Expecting ',' delimiter in line 2, column 1"),
        ("- name: a", "it is no JSON: Expecting value in line 1, column 1"),
        ("[{} , NaN]", "it is no JSON: NaN is no JSON"),
        ("[" * 100_000, "it is no JSON: maximum recursion depth exceeded"),
        ('{"name": "a"}', "it is no array of objects"),
        ("[1]", "it is no array of objects"),
        ("null", "it is no array of objects"),
    ],
)
def test_malformed_selectors_are_not_changed(text, message):
    for change in (lambda: set_driver(text, T4, "535.161.08"), lambda: remove_driver(text, T4)):
        with pytest.raises(ProfileError) as raised:
            change()
        assert str(raised.value).startswith(message)


def test_of_two_selectors_of_the_same_pods_none_is_chosen():
    text = f"[{selector(T4, '535.161.08', name='a')}, {selector(T4, '570.133.20', name=None)}]"
    nameless = f"[{selector(T4, '535.161.08', name='a')}, {selector(T4, '570.133.20', name='')}]"

    for each in (text, nameless):
        with pytest.raises(ProfileError, match="set a driver for the same pods: remove all but one"):
            set_driver(each, T4, "535.161.08")


def test_a_name_is_not_given_twice():
    with pytest.raises(ProfileError, match="the selector gpu-driver selects other pods: rename it, or remove it"):
        set_driver(f"[{selector(T4, '535.161.08', name='gpu-driver')}]", CLASS_GPU, "535.161.08")


def test_selectors_that_set_a_driver_for_some_of_the_pods_are_found():
    in_team = {"namespaceSelector": {"matchLabels": {"team": "vision"}}}
    entries = [
        selector(CLASS_GPU, "535.161.08", name="class"),
        selector(RESERVED, "1.5.0", name="reserved"),
        selector(T4, "535.161.08", name="own"),
        selector(T4, "535.161.08", name="team", **in_team),
        selector(CLASS_GPU, name="no driver"),
        selector(CLASS_GPU, "535.161.08", name="any", objectSelector={}),
    ]
    selectors = read_selectors(f"[{','.join(entries)}]")

    assert [each.name for each in find_overlaps(selectors, T4)] == ["class", "team", "any"]
    assert [each.name for each in find_overlaps(selectors, CLASS_GPU)] == ["own", "team", "any"]
    assert [each.name for each in find_overlaps(selectors, RESERVED)] == ["any"]


SPACES = st.text(" \t\n", max_size=3)
OTHERS = st.lists(
    st.dictionaries(
        st.sampled_from(["name", "effect", "objectSelector", "x"]), st.none() | st.text() | st.lists(st.integers())
    ),
    max_size=4,
)


@settings(deadline=None, max_examples=50)
@given(others=OTHERS, spaces=SPACES, index=st.integers(0, 4), pods=st.sampled_from([RESERVED, CLASS_GPU, T4]))
def test_whatever_else_is_there_is_left_alone(others, spaces, index, pods):
    written = [json.dumps(each) for each in others]
    own = json.dumps(
        {"name": "own", "objectSelector": {"matchLabels": pods.labels}, "effect": {"labels": {DRIVER: "1"}}}
    )
    written.insert(min(index, len(written)), own)
    before = f"[{spaces}{f'{spaces},{spaces}'.join(written)}{spaces}]"

    changed = set_driver(before, pods, "2.0")
    removed = remove_driver(before, pods)

    (found,) = (each for each in read_selectors(changed) if each.selects(pods))
    assert found.driver == "2.0"
    assert [json.dumps(each) for each in json.loads(removed or "[]")] == [each for each in written if each != own]
    assert changed.replace(changed[found.start : found.end], own) == before
