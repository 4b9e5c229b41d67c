"""Inputs are matched by RE2: what it takes, what it refuses, and where it differs from Python's `re`."""

import subprocess
import sys

import pytest

from relaunch.adapters.input_patterns import Re2Patterns, compile_pattern
from relaunch.ports import PermanentError, UnsupportedPatternError


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        pytest.param("[0-9.e-]+", "1e-3", True, id="all-of-it"),
        pytest.param("[0-9]+", "12x", False, id="whole-value"),
        pytest.param("a|ab", "ab", True, id="the-other-choice"),
        pytest.param("[0-9]+$", "12\n", False, id="no-newline-at-the-end"),
        pytest.param("a.b", "a\nb", False, id="a-dot-is-no-newline"),
        pytest.param(".*", "zürich", True, id="characters-are-not-bytes"),
        pytest.param(".{6}", "zürich", True, id="characters-are-counted"),
        pytest.param(r"\d+", "\u0664", False, id="digits-are-ascii"),
        pytest.param(r"\w+", "ä", False, id="words-are-ascii"),
        pytest.param(r"\pL+", "ä", True, id="letters-of-unicode"),
        pytest.param("(?i)main", "MAIN", True, id="case"),
        pytest.param("(?i)zürich", "ZÜRICH", True, id="case-of-unicode"),
        pytest.param(r"z\x{fc}rich", "zürich", True, id="a-character-by-its-number"),
        pytest.param("", "", True, id="nothing"),
        pytest.param(".*", "\ud800", False, id="half-of-a-surrogate-pair"),
        pytest.param("(a+)+", "a" * 1023 + "b", False, id="exponential-elsewhere"),
        pytest.param("(.*a.{50})(.*a.{50})(.*a.{50})b", "a" * 1024, False, id="more-states-than-memory"),
    ],
)
def test_the_whole_value_is_matched(pattern: str, value: str, expected: bool) -> None:
    assert Re2Patterns().matches(pattern, value) is expected


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        pytest.param(r"(a)\1", "back references", id="back-reference"),
        pytest.param("(?P<n>a)(?P=n)", "references to groups", id="named-back-reference"),
        pytest.param("(?=a)b", "look-around", id="look-ahead"),
        pytest.param("(?<!a)b", "look-around", id="look-behind"),
        pytest.param("(?>a+)b", "atomic groups", id="atomic-group"),
        pytest.param("a++", "possessive", id="possessive"),
        pytest.param(r"a\Z", r"write \z", id="end-of-text"),
        pytest.param("a{1001}", "1000", id="too-many"),
        pytest.param("(((a{9}){9}){9}){9}", "1000", id="nested-repetitions"),
        pytest.param(r"\pL{1,500}", "smaller", id="too-large"),
        pytest.param("[0-9", "missing ]", id="no-expression"),
        pytest.param("\ud800", "surrogates not allowed", id="no-text"),
    ],
)
def test_what_is_not_supported_is_refused_with_what_to_write_instead(pattern: str, reason: str) -> None:
    with pytest.raises(UnsupportedPatternError) as refused:
        compile_pattern(pattern)

    assert str(refused.value).startswith(f"`{pattern}` is not a regular expression that RE2 takes: ")
    assert reason in str(refused.value)
    assert isinstance(refused.value, PermanentError)
    with pytest.raises(UnsupportedPatternError):
        Re2Patterns().matches(pattern, "a")


def test_a_refusal_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnsupportedPatternError):
        compile_pattern("(")

    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("module", ["relaunch.bootstrap", "relaunch_cli.app", "github_webhook.handler"])
def test_re2_is_imported_by_nothing_that_checks_no_inputs(module: str) -> None:
    program = f"import sys, {module}; sys.exit('re2' in sys.modules)"

    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": ":".join(sys.path)})
