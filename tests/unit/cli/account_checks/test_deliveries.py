from datetime import timedelta

import pytest

from fakes.builders import NOW, make_definition
from relaunch.core.checks import Verdict
from relaunch.core.definitions.definition import GithubTrigger, S3Trigger
from relaunch.ports.deliveries import SweepReport
from relaunch_cli.account_checks.deliveries import check_deliveries, watches_github, without_token


def test_whether_a_trigger_waits_for_github() -> None:
    of_github = make_definition(triggers=(S3Trigger("data", "", ""), GithubTrigger("acme/vision", "push")))
    other = make_definition(triggers=(S3Trigger("data", "", ""),))

    assert watches_github([other, of_github])
    assert not watches_github([other])


def test_without_a_token_it_says_who_has_to_redeliver() -> None:
    check = without_token()

    assert check.verdict is Verdict.OK
    assert "unless somebody redelivers it" in check.text


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (None, [(Verdict.UNKNOWN, "no pass yet")]),
        (SweepReport(NOW - timedelta(minutes=29), 7), [(Verdict.OK, "asked for 7 again")]),
        (SweepReport(NOW - timedelta(hours=2, seconds=1)), [(Verdict.PROBLEM, "the last pass was at")]),
        (SweepReport(NOW, 0, ("HTTP 401",)), [(Verdict.PROBLEM, "HTTP 401")]),
        (SweepReport(NOW, 0, ("a", "b")), [(Verdict.PROBLEM, "a"), (Verdict.PROBLEM, "b")]),
        (
            SweepReport(NOW, 0, (), ("acme/x",)),
            [(Verdict.UNKNOWN, "no webhook of acme/x"), (Verdict.OK, "asked for 0")],
        ),
        (SweepReport(NOW, 1, (), (), "HTTP 429"), [(Verdict.UNKNOWN, "HTTP 429")]),
        (SweepReport(NOW, 1, ("a",), (), "HTTP 429"), [(Verdict.PROBLEM, "a"), (Verdict.UNKNOWN, "HTTP 429")]),
    ],
)
def test_the_last_pass_says_what_is_wrong(report: SweepReport | None, expected: list[tuple[Verdict, str]]) -> None:
    checks = list(check_deliveries(report, NOW))

    assert [each.verdict for each in checks] == [verdict for verdict, _ in expected]
    for check, (verdict, text) in zip(checks, expected, strict=True):
        assert text in check.text
        assert bool(check.to_do) is (verdict is not Verdict.OK)
