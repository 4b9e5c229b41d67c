"""explain."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from fakes.builders import NOW, make_definition, make_offering, make_offering_key
from fakes.cli_session import flat
from relaunch.core.jobs.job import TimelineEntry
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.explanation import explain
from relaunch.ports import JobHistory
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch_cli.views.jobs import render_full_explanation


def test_explain_has_the_next_step_the_last_events_and_the_newest_selection(relaunch, session):
    job_id = session.run_interrupted_job()

    text = relaunch("explain", job_id).stdout

    assert "Waits for      the training to finish; it runs on g4dn.xlarge spot" in text
    assert "Selection of attempt 1" not in text
    assert "Selection of attempt 2" in text
    assert (
        "\ng4dn.xlarge (1x T4 15 GiB) spot by g4dn-xlarge-spot at $0.1600/h\nfirst of 5 offerings; 1 left out" in text
    )
    assert len([line for line in text.splitlines() if line[2:3] == ":"]) == 6
    # Steps of a start and of a stop that are over leave room for what came of them.
    assert "other events: see --full" in text
    assert re.search(r" 1 +RUNNING +running", text)
    assert re.search(r" 1 +WAITING +stopped: interruption", text)
    assert not re.search(r"task (placed|PENDING|PROVISIONING|stopping)", text)
    assert "task placed" in relaunch("explain", job_id, "--full").stdout


def test_a_full_explanation_has_the_whole_timeline_and_every_selection(relaunch, session):
    job_id = session.run_interrupted_job()

    text = relaunch("explain", job_id, "--full").stdout
    document = relaunch("explain", job_id, "--json").document

    assert "Waits for      the training to finish; it runs on g4dn.xlarge spot" in text
    assert "Selection of attempt 1" in text
    assert "Selection of attempt 2" in text
    assert [entry["state"] for entry in document["timeline"]][-1] == "RUNNING"
    assert document["timeline"][0]["at"] == NOW.isoformat()
    assert [each["attempt"] for each in document["selections"]] == [1, 2]
    (advice,) = document["explanation"]["advice"]
    assert advice.startswith("its last attempt gained no step; after 3 in a row the job fails: ")
    assert "When stopped   SIGKILL follows SIGTERM after 90 s: `stopTimeout` of the task" in text
    assert document["explanation"]["stop_timeout"] == {"seconds": 90, "set_by": "task definition"}


def test_explain_says_nothing_of_a_stop_that_is_over(relaunch, session):
    job_id = session.submit("a")
    relaunch("cancel", job_id)

    text = relaunch("explain", job_id).stdout

    assert "CANCELLED" in text
    assert "SIGKILL" not in text


def test_explain_lists_what_the_owner_of_a_waiting_job_can_change(relaunch, session):
    session.deps.definitions.save_definition(make_definition(max_running_jobs=1))
    running = session.submit("a")
    session.launch(running)
    waiting = session.submit("b")
    launch_attempt(waiting, session.deps)

    text = flat(relaunch("explain", waiting).stdout)
    document = relaunch("explain", waiting, "--json").document

    assert "Waits for a free slot: definition resnet has no free slot of its 1" in text
    assert "Advice cancel a job that is not needed" in text
    # Nothing happens then at the latest: it is only looked at again.
    assert "Looked at by" in text
    assert "At the latest" not in text
    assert "1 of resnet (max_waiting_jobs is 1000), 1 in the stack (MaxWaitingJobs is 5000)" in text
    assert document["explanation"]["jobs_waiting"] == {
        "of_definition": 1,
        "limit_of_definition": 1000,
        "of_stack": 1,
        "limit_of_stack": 5000,
    }
    assert relaunch("explain", running, "--json").document["explanation"]["jobs_waiting"] is None


def test_explain_and_show_say_which_budget_a_job_waits_for_and_what_it_has_reserved(relaunch, session):
    relaunch("budgets", "set", "definition/resnet", "--monthly", "0.10")
    relaunch("budgets", "set", "stack", "--total", "1000")
    job_id = session.submit()
    launch_attempt(job_id, session.deps)

    waits, shown = (flat(relaunch(command, job_id).stdout) for command in ("explain", "show"))
    found = relaunch("budgets", "--json").document["budgets"]
    relaunch("budgets", "set", "definition/resnet", "--monthly", "5")
    session.run(session.launch(job_id))
    runs = flat(relaunch("show", job_id).stdout)
    document = relaunch("show", job_id, "--json").document

    assert (
        "Waits for its budget: the budget of definition/resnet for 2026-03 is $0.10, of which $0.00 is spent or "
        "reserved, and an hour costs $0.16; an operator may raise it: "
        "relaunch budgets set definition/resnet --monthly USD"
    ) in waits
    assert "Next it is launched when the budget has room for an hour" in waits
    assert "(in 10m00s)" in waits
    assert "Advice `relaunch budgets` lists what each budget has left" in waits
    assert "WAITING (budget)" in shown
    assert "Budgets" not in shown
    assert {(each["monthly"] or each["total"])["reserved_usd"] for each in found} == {0.0}
    assert "Budgets spent or reserved: $0.16 of definition/resnet, $0.16 of stack" in runs
    assert document["reserved_usd"] == {"definition/resnet": 0.16, "stack": 0.16}


def test_explain_names_its_own_option_for_all_rejections(relaunch, session):
    session.offerings.available = tuple(
        make_offering(f"g{number}.xlarge", price_usd_per_hour=float(number)) for number in range(5, 14)
    )
    session.deps.definitions.save_definition(make_definition(max_price_usd_per_hour=0.01))
    job_id = session.submit()
    launch_attempt(job_id, session.deps)

    shown = flat(relaunch("explain", job_id).stdout)

    assert "5 more for other reasons of this filter: see --full" in shown
    assert "--all" not in shown
    assert "Advice raise max_price_per_hour, which is 0.01 USD cancel the job, change the definition" in shown
    assert "MaxPricePerHour" not in shown


def shown(of: JobHistory) -> str:
    console = Console(file=io.StringIO(), width=200)
    with console.capture() as capture:
        console.print(render_full_explanation(of, explain(of.job, NOW), NOW, (), is_full=False))
    return capture.get()


@pytest.mark.parametrize(("end", "is_over"), [("task stopped", True), ("stopped", True), ("stop repeated", False)])
def test_the_steps_of_a_stop_are_left_out_once_it_is_over(session, end, is_over):
    history = session.jobs.load_history(session.submit())
    events = (("task stopping", 1), (end, 1), ("task PENDING", 2))
    timeline = tuple(TimelineEntry(NOW, JobState.STOPPING, event, attempt_number=number) for event, number in events)

    text = shown(replace(history, timeline=timeline))

    assert ("task stopping" not in text) is is_over
    assert "task PENDING" in text


def test_explain_says_what_ec2_chose_instead_of_the_first_of_the_selection(relaunch, session):
    job_id = session.submit()
    session.launch(job_id)
    before = session.jobs.load_history(job_id)
    (attempt,) = before.attempts
    placement = replace(attempt.placement, machine_id="m-1", offering=make_offering_key("g6.xlarge", "us-east-1b"))
    history = replace(before, attempts=(replace(attempt, placement=placement),))

    assert "it ran on g6.xlarge spot us-east-1b: EC2 chooses among what is expected to cost about the same" in (
        shown(history)
    )
    assert "it ran on" not in shown(before)
