"""ps."""

from datetime import timedelta

from fakes.builders import make_definition
from relaunch_cli import commands


def test_ps_lists_open_jobs_newest_first_and_all_on_demand(relaunch, session):
    running = session.run_interrupted_job()
    session.clock.advance(60)
    done = session.submit("second")
    task = session.launch(done)
    session.run(task)
    session.finish(task)

    usual = relaunch("ps").stdout.splitlines()
    everything = relaunch("ps", "--all").stdout.splitlines()

    assert [line.split()[0] for line in usual] == ["JOB", running]
    assert [line.split()[:2] for line in everything[1:]] == [[done, "SUCCEEDED"], [running, "RUNNING"]]


def test_ps_says_what_a_job_waits_for(relaunch, session):
    session.submit()

    assert "WAITING (launch)" in relaunch("ps").stdout
    assert relaunch("ps", "--json").document["jobs"][0]["attempt"] is None


def test_a_wide_ps_has_reasons_and_keeps_one_line_per_job(relaunch, session):
    session.submit("a")
    session.clock.advance(1)
    session.submit("b")

    lines = relaunch("ps", columns=200).stdout.splitlines()

    assert len(lines) == 3
    assert lines[0].split()[-1] == "REASON"


def test_why_a_job_failed_comes_before_who_started_it(relaunch, session):
    task = session.launch(session.submit())
    session.run(task)
    session.finish(task, exit_code=3)

    narrow, wide = (relaunch("ps", "--all", columns=width).stdout for width in (108, 160))

    assert "the program failed" in narrow
    assert "STARTED BY" not in narrow
    assert "STARTED BY" in wide


def end(session, job_id):
    task = session.launch(job_id)
    session.run(task)
    session.finish(task)


def test_open_jobs_are_all_listed_whatever_the_limit(relaunch, session):
    old = [session.submit(key) for key in "ab"]
    for key in "cde":
        session.clock.advance(1)
        end(session, session.submit(key))

    result = relaunch("ps", "--limit", "2")

    assert sorted(line.split()[0] for line in result.stdout.splitlines()[1:]) == sorted(old)
    assert result.stderr == ""


def test_many_open_jobs_are_read_by_pages(relaunch, session, monkeypatch):
    monkeypatch.setattr(commands.ps, "_MOST_ONE_BY_ONE", 1)
    monkeypatch.setattr(commands.ps, "_PAGE_SIZE", 2)
    open_jobs = [session.submit(key) for key in "abcde"]
    session.clock.advance(1)
    end(session, session.submit("newest"))

    shown = relaunch("ps", "--limit", "1", "--json").document["jobs"]

    assert sorted(job["job_id"] for job in shown) == sorted(open_jobs)


def test_of_jobs_that_have_ended_no_more_than_the_limit_are_read(relaunch, session):
    for key in "abc":
        session.clock.advance(1)
        end(session, session.submit(key))

    result = relaunch("ps", "--all", "--limit", "2")

    assert len(result.stdout.splitlines()) == 3
    assert "only the newest 2 jobs were read, and all open ones" in result.stderr
    document = relaunch("ps", "--all", "--limit", "2", "--json").document
    assert document["is_cut"] is True
    assert len(document["jobs"]) == 2


def test_the_cost_is_that_of_show_and_includes_the_running_task(relaunch, session):
    job_id = session.run_interrupted_job()
    session.clock.advance(timedelta(hours=10))

    (listed,) = relaunch("ps", "--json").document["jobs"]
    shown = relaunch("show", job_id, "--json").document

    assert listed["cost_usd"] == shown["cost_usd"] > 1
    assert listed["run_seconds"] == shown["run_seconds"]


def test_no_jobs_is_no_table(relaunch):
    assert relaunch("ps").stdout == ""
    assert "--all" in relaunch("ps").stderr


def test_watching_goes_on_until_ctrl_c(relaunch, session):
    job_id = session.submit()
    session.on_pause = [lambda: session.launch(job_id)]

    result = relaunch("ps", "--watch")

    assert result.exit_code == 130
    assert "LAUNCHING" in result.stdout


def test_watching_says_that_there_are_no_jobs(relaunch):
    result = relaunch("ps", "--watch")

    assert result.stdout.splitlines()[0] == "no open jobs; --all includes jobs that have ended"
    assert "STATE" not in result.stdout


def shown_jobs(relaunch, *options):
    return [each["job_id"] for each in relaunch("ps", *options, "--json").document["jobs"]]


def test_jobs_are_found_by_state_definition_and_age(relaunch, session):
    session.register(make_definition(name="bert"))
    old = session.submit("old")
    session.clock.advance(timedelta(hours=3))
    failed = session.submit("a")
    task = session.launch(failed)
    session.run(task)
    session.finish(task)
    other = session.submit("b", definition="bert")

    assert shown_jobs(relaunch, "--state", "waiting") == [other, old]
    assert shown_jobs(relaunch, "--state", "SUCCEEDED") == [failed]
    assert shown_jobs(relaunch, "--state", "SUCCEEDED", "--state", "WAITING") == [other, failed, old]
    assert shown_jobs(relaunch, "--definition", "bert") == [other]
    assert shown_jobs(relaunch, "--since", "2h") == [other, failed]
    assert shown_jobs(relaunch, "--since", "2h", "--state", "WAITING", "--definition", "resnet") == []
    assert relaunch("ps", "--definition", "bert", "--state", "FAILED").stderr == "no such jobs\n"
    assert relaunch("definitions", "delete", "bert", "--yes").exit_code == 0
    assert shown_jobs(relaunch, "--definition", "bert") == [other]


def test_what_no_job_can_be_found_by_is_refused(relaunch):
    state, age = relaunch("ps", "--state", "RUNING"), relaunch("ps", "--since", "yesterday")

    assert (state.exit_code, age.exit_code) == (2, 2)
    assert "did you mean RUNNING?" in state.stderr
    assert "the states are WAITING, LAUNCHING" in relaunch("ps", "--state", "x").stderr
    assert "--since: " in age.stderr
    nobody, typo = (relaunch("ps", "--definition", each, "--json") for each in ("nobody", "resnt"))
    assert (nobody.exit_code, nobody.stdout, typo.exit_code) == (3, "", 3)
    assert "there is no job definition 'resnt'" in typo.stderr
    assert "did you mean resnet?" in typo.stderr


def test_older_jobs_that_have_ended_are_not_missing_from_the_last_hour(relaunch, session):
    for key in "abc":
        end(session, session.submit(key))
        session.clock.advance(timedelta(hours=1))

    result = relaunch("ps", "--since", "3h", "--limit", "2", "--json").document

    assert len(result["jobs"]) == 1
    assert result["is_cut"] is False


def test_a_job_says_since_when_and_by_whom_it_was_started(relaunch, session):
    session.submit("a")
    session.clock.advance(90)

    lines = relaunch("ps", columns=160).stdout.splitlines()
    (document,) = relaunch("ps", "--json").document["jobs"]

    assert lines[0].split()[:7] == ["JOB", "STATE", "SINCE", "ATT", "MACHINE", "ZONE", "COST"]
    assert "1m30s" in lines[1]
    assert document["state_since"]
    assert document["started_by"]
