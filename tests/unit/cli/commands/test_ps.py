"""ps."""


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


def test_a_wide_ps_keeps_one_line_per_job(relaunch, session):
    session.submit("a")
    session.clock.advance(1)
    session.submit("b")

    lines = relaunch("ps", columns=120).stdout.splitlines()

    assert len(lines) == 3
    assert lines[0].split()[-1] == "REASON"


def test_ps_reads_no_more_than_its_limit_and_says_so(relaunch, session):
    for key in "abc":
        session.clock.advance(1)
        session.submit(key)

    result = relaunch("ps", "--limit", "2")

    assert len(result.stdout.splitlines()) == 3
    assert "only the newest 2 jobs were read" in result.stderr
    document = relaunch("ps", "--limit", "2", "--json").document
    assert document["is_cut"] is True
    assert len(document["jobs"]) == 2


def test_no_jobs_is_no_table(relaunch):
    assert relaunch("ps").stdout == ""
    assert "--all" in relaunch("ps").stderr


def test_watching_goes_on_until_ctrl_c(relaunch, session):
    job_id = session.submit()
    session.on_pause = [lambda: session.launch(job_id)]

    result = relaunch("ps", "--watch")

    assert result.exit_code == 130
    assert "LAUNCHING" in result.stdout
