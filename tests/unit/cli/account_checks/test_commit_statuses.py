from datetime import timedelta

import pytest

from fakes.builders import NOW
from relaunch.core.checks import Verdict
from relaunch.core.notices.status_report import StatusReport
from relaunch.ports.notices import ReceiverPause
from relaunch_cli.account_checks.commit_statuses import check_statuses

DAY = timedelta(days=1)
TAKEN = StatusReport(NOW - DAY, "acme/vision", NOW + 90 * DAY)
REFUSED = StatusReport().with_problem("acme/speech", "HTTP 403 Resource not accessible", NOW)
SINCE = ReceiverPause(NOW - DAY, NOW + timedelta(minutes=9), "HTTP 401 Bad credentials")


@pytest.mark.parametrize(
    ("report", "pause", "expected"),
    [
        pytest.param(StatusReport(), None, [("unknown", "none was set yet")], id="new"),
        pytest.param(
            TAKEN,
            None,
            [("ok", "that of a commit of acme/vision at 2026-03-13 09:26 UTC"), ("ok", "expires at 2026-06-12 09:26")],
            id="taken",
        ),
        pytest.param(
            StatusReport(NOW, "acme/vision", None),
            None,
            [("ok", "acme/vision"), ("ok", "names no time")],
            id="for-ever",
        ),
        pytest.param(
            StatusReport(NOW, "acme/vision", NOW + 13 * DAY),
            None,
            [("ok", "acme/vision"), ("problem", "the token expires at")],
            id="soon",
        ),
        pytest.param(
            StatusReport(NOW - 30 * DAY, "acme/vision", NOW - DAY),
            SINCE,
            [("problem", "HTTP 401"), ("ok", "acme/vision"), ("problem", "the token expired at")],
            id="expired",
        ),
        pytest.param(
            StatusReport(NOW, "acme/vision", NOW),
            None,
            [("ok", "acme/vision"), ("unknown", "a time that is over at once")],
            id="not-to-be-believed",
        ),
        pytest.param(REFUSED, None, [("problem", "HTTP 403")], id="refused"),
        pytest.param(StatusReport(), SINCE, [("problem", "takes none since 2026-03-13 09:26 UTC")], id="token-refused"),
        pytest.param(
            StatusReport(),
            ReceiverPause(NOW - DAY, NOW),
            [],
            id="pause-that-is-over",
        ),
    ],
)
def test_it_says_what_github_answered_and_until_when_the_token_is_good(
    report: StatusReport, pause: ReceiverPause | None, expected: list[tuple[str, str]]
) -> None:
    checks = list(check_statuses(report, pause, NOW))

    assert [check.verdict for check in checks] == [Verdict(verdict) for verdict, _ in expected]
    for check, (_, text) in zip(checks, expected, strict=True):
        assert text in check.text
        assert bool(check.to_do) == (check.verdict is not Verdict.OK)
