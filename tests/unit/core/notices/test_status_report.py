from datetime import UTC, datetime, timedelta

from relaunch.core.notices.status_report import MAX_PROBLEMS, StatusProblem, StatusReport

NOW = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)
EXPIRES = datetime(2027, 1, 31, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_problem_is_said_once_a_day() -> None:
    report = StatusReport().with_problem("acme/vision", "HTTP 403", NOW)

    assert report.is_said("acme/vision", "HTTP 403", NOW + 23 * HOUR)
    assert report.with_problem("acme/vision", "HTTP 403", NOW + 23 * HOUR) == report
    again = report.with_problem("acme/vision", "HTTP 403", NOW + 24 * HOUR)
    assert again.problems["acme/vision"].said_at == NOW + 24 * HOUR
    assert not report.is_said("acme/vision", "HTTP 403", NOW + 24 * HOUR)
    assert not report.is_said("acme/vision", "HTTP 422", NOW)
    assert not report.is_said("acme/speech", "HTTP 403", NOW)


def test_the_newest_problems_are_kept() -> None:
    report = StatusReport()
    for number in range(MAX_PROBLEMS + 1):
        report = report.with_problem(f"acme/{99 - number}", "HTTP 403", NOW + number * HOUR)

    assert set(report.problems) == {f"acme/{99 - number}" for number in range(1, MAX_PROBLEMS + 1)}


def test_a_status_that_is_taken_ends_the_problem_of_its_repository() -> None:
    report = StatusReport(taken_at=NOW, late_said_at=NOW - HOUR).with_problem("acme/vision", "HTTP 403", NOW)
    report = report.with_problem("acme/speech", "HTTP 403", NOW)

    after = report.after_taken("acme/vision", NOW, EXPIRES)

    kept = {"acme/speech": StatusProblem("HTTP 403", NOW)}
    assert after == StatusReport(NOW, "acme/vision", EXPIRES, kept, NOW - HOUR)


def test_taken_statuses_are_noted_once_an_hour_and_where_the_token_is_another_one() -> None:
    report = StatusReport().after_taken("acme/vision", NOW, EXPIRES)

    assert report.after_taken("acme/speech", NOW + HOUR / 2, EXPIRES) is report
    assert report.after_taken("acme/speech", NOW + HOUR, EXPIRES).taken_at == NOW + HOUR
    assert report.after_taken("acme/speech", NOW, EXPIRES + HOUR).token_expires_at == EXPIRES + HOUR


def test_a_repository_that_refuses_all_statuses_is_left_alone_for_ten_minutes() -> None:
    report = StatusReport().with_problem("acme/vision", "HTTP 403", NOW, is_barred=True)
    report = report.with_problem("acme/speech", "HTTP 422", NOW)

    assert report.barred_until("acme/vision") == NOW + timedelta(minutes=10)
    assert report.barred_until("acme/speech") is None
    assert report.barred_until("acme/other") is None


def test_late_ends_are_said_once_a_day() -> None:
    assert not StatusReport().is_late_said(NOW)
    assert StatusReport(late_said_at=NOW).is_late_said(NOW + 23 * HOUR)
    assert not StatusReport(late_said_at=NOW).is_late_said(NOW + 24 * HOUR)
    said = StatusReport(version=3).with_late_said(NOW)
    assert (said.late_said_at, said.version) == (NOW, 3)
    assert said.with_late_said(NOW + 23 * HOUR) is said
