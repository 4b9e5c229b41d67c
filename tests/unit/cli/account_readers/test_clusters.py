"""Jobs whose pods are in a cluster that the stack had before."""

from dataclasses import replace
from unittest.mock import Mock

from fakes.builders import make_running_job
from relaunch.core.checks import Verdict
from relaunch.core.jobs.cost import summarize_job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.unconfirmed_stops import ELSEWHERE
from relaunch_cli.account_readers.clusters import check_clusters


def test_jobs_whose_pods_are_elsewhere_are_a_problem() -> None:
    running = make_running_job()
    stopping = replace(running, job_id="bert-5a6b7c8d", state=JobState.STOPPING, reason=ELSEWHERE)
    for jobs, verdict in (((running,), Verdict.OK), ((running, stopping), Verdict.PROBLEM)):
        store = Mock(list_jobs=Mock(return_value=([summarize_job(each) for each in jobs], None)))
        (check,) = check_clusters(store)
        assert check.verdict is verdict
        assert ("bert-5a6b7c8d" in check.text) is (verdict is Verdict.PROBLEM)
