"""A load keeps AWS's limits, loses and duplicates nothing, and takes little longer than the limits allow."""

import json
from collections import Counter
from contextlib import AbstractContextManager

import pytest

from relaunch.adapters.aws.ecs import run_task as ecs_run_task
from relaunch.core.lifecycle import launching
from relaunch.usecases import submit_job
from relaunch_local.ecs import Timing
from relaunch_local.ecs.rules import limits
from relaunch_local.simulation.load import account
from relaunch_local.simulation.load.limits import Load, limits_of, tightest
from relaunch_local.simulation.load.options import LoadOptions
from relaunch_local.simulation.load.run import LoadResult, describe, main, run_load
from simulation.planting import patched

EVENTS = 60
# Four rounds of machines with one GPU each: what a run takes grows with the square of its events.
SMALL = LoadOptions(EVENTS, "g4dn.xlarge", provisioning_quota=15)
WORDS = ["--events", "60", "--machine", "g4dn.xlarge", "--provisioning-quota", "15"]


@pytest.fixture(scope="module")
def result() -> LoadResult:
    return run_load(SMALL)


def test_every_event_becomes_one_job_with_one_task_that_ends_well(result: LoadResult) -> None:
    assert result.faults == []
    assert (result.accepted, result.jobs, result.launched, result.tasks) == (EVENTS,) * 4
    assert result.ends == Counter({"SUCCEEDED": EVENTS})
    assert result.repeated > 0


def test_the_invariants_of_every_simulation_are_checked_at_every_step(result: LoadResult) -> None:
    assert result.violations == ()
    assert result.checks > 50 * EVENTS


def test_the_limits_refuse_calls(result: LoadResult) -> None:
    assert result.refused["run_task: ClientException"] > 0
    assert result.calls["run_task"] > EVENTS


def test_it_takes_little_longer_than_the_tightest_limit_which_the_last_line_names(result: LoadResult) -> None:
    assert 1 <= result.ratio <= 1.10
    assert describe(result).splitlines()[-1] == (
        "tightest limit: tasks in PROVISIONING (15 per cluster, 120 s each); floor 501.0 s; "
        f"took {result.took_seconds:,.1f} s; ratio {result.ratio:.3f}"
    )


def test_a_launch_that_run_task_throttles_is_not_lost() -> None:
    with patched(limits, _RATES={**limits._RATES, "task-modify": (10.0, 4.0)}):
        result = run_load(LoadOptions(EVENTS, is_warm=True))

    assert result.refused["run_task: ThrottlingException"] > 0
    assert (result.tightest.name, result.tightest.documented) == ("RunTask and StopTask", "10 at once, then 4/s")
    assert (result.launched, result.tasks, result.dead_letters) == (EVENTS, EVENTS, 0)


def test_what_was_throttled_does_not_wait_for_the_visibility_time_out() -> None:
    with patched(limits, _RATES={**limits._RATES, "definition-read": (5.0, 2.0)}):
        result = run_load(LoadOptions(EVENTS, is_warm=True))

    assert result.refused["describe_task_definition: ThrottlingException"] > 0
    assert (result.launched, result.dead_letters) == (EVENTS, 0)
    # That of the queue of events is three minutes, that of launches six.
    assert result.took_seconds < 150


@pytest.fixture(scope="module")
def own() -> LoadResult:
    return run_load(LoadOptions(40, is_own=True))


class TestMachinesOfOurOwn:
    """A load on machines that EC2 Fleet starts."""

    def test_every_event_becomes_one_job_with_one_task_that_ends_well(self, own: LoadResult) -> None:
        wrong = [each for each in own.faults if not each.startswith("it took")]
        assert wrong == []
        assert (own.accepted, own.jobs, own.launched, own.tasks) == (40,) * 4
        assert own.ends == Counter({"SUCCEEDED": 40})

    def test_jobs_share_machines_of_which_each_is_requested_and_ended_once(self, own: LoadResult) -> None:
        fewest = 40 // 8
        assert fewest <= own.fleets <= own.machines < 40
        # One task on each machine runs there all the time.
        assert own.calls["terminate_instances"] >= own.fleets
        assert own.calls["run_task"] == 40

    def test_the_cluster_is_not_asked_where_each_task_runs(self, own: LoadResult) -> None:
        assert own.calls["describe_container_instances"] < 10

    def test_transactions_on_the_items_that_all_jobs_share_are_counted(self, own: LoadResult) -> None:
        assert own.shared_writes["slots of the stack"] == 2 * 40
        assert own.conflicts["conflict: slots of the stack"] > 0

    def test_with_one_gpu_each_there_is_a_machine_for_each_job(self) -> None:
        result = run_load(LoadOptions(12, "g4dn.xlarge", is_own=True))

        # They start in two waves.
        assert (result.machines, result.fleets, result.launched) == (12,) * 3
        assert result.tightest.name == "functions request_machine at once"

    def test_within_max_machines_the_jobs_run_one_round_after_the_other(self) -> None:
        result = run_load(LoadOptions(6, "g4dn.xlarge", is_own=True, max_machines=2))

        assert result.ends == Counter({"SUCCEEDED": 6})
        assert [each for each in result.faults if not each.startswith("it took")] == []
        assert result.tightest.name == "machines of our own at once"


def test_events_that_lambda_refuses_because_too_many_functions_run_come_again() -> None:
    with patched(account, LAMBDA_CONCURRENCY=10):
        result = run_load(LoadOptions(60, is_warm=True))

    assert result.refused["functions: TooManyRequests"] > 0
    assert (result.accepted, result.violations) == (60, ())


BACK_OFF_TOO_LONG = patched(launching, _DEFERRED_DELAY_SECONDS=400)
QUOTA_IS_REFUSAL = patched(ecs_run_task, LaunchDeferred=ecs_run_task.LaunchRefused)


def _id_of_each_delivery() -> AbstractContextManager[object]:
    derive, numbers = submit_job.derive_job_id, Counter[str]()

    def derive_another(identity: str, definition: str) -> str:
        numbers[identity] += 1
        return derive(f"{identity} {numbers[identity]}", definition)

    return patched(submit_job, derive_job_id=derive_another)


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        pytest.param(BACK_OFF_TOO_LONG, "times what tasks in PROVISIONING allows", id="retries-that-back-off-too-long"),
        pytest.param(QUOTA_IS_REFUSAL, "jobs launched, not 60", id="a-quota-taken-for-a-refusal"),
        pytest.param(_id_of_each_delivery(), "jobs, not 60", id="each-delivery-another-event"),
    ],
)
def test_a_bug_that_loses_duplicates_or_delays_jobs_is_reported_and_ends_non_zero(planted, said, capsys) -> None:
    with planted:
        status = main(WORDS)

    assert status == 1
    assert any(line.startswith("WRONG") and said in line for line in capsys.readouterr().out.splitlines())


def test_json_is_one_document(capsys) -> None:
    status = main(["--events", "20", "--warm", "--json"])

    document = json.loads(capsys.readouterr().out)
    assert status == int(bool(document["faults"]))
    assert document["tightest"] in [each["name"] for each in document["limits"]]
    assert document["ends"] == {"SUCCEEDED": 20}


@pytest.mark.parametrize(
    "words", [["--events", "0"], ["--provisioning-quota", "0"], ["--machine", "t3.micro"], ["--max-machines", "3"]]
)
def test_invalid_options_are_refused(words: list[str], capsys) -> None:
    with pytest.raises(SystemExit):
        main(words)

    assert words[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("load", "name", "seconds"),
    [
        # 9,900 beyond the burst at 40 per second, then a second and a pull.
        pytest.param(Load(10_000, 3, 0, 8, 500), "RunTask and StopTask", 247.5 + 21, id="with-machines"),
        # Twenty rounds of 120 seconds.
        pytest.param(Load(10_000, 3, 1_250, 8, 500), "tasks in PROVISIONING", 20 * 120 + 21, id="of-eight-gpus"),
        # Two requests at once, then a minute until the last one registers, and the reaction of its agent.
        pytest.param(
            Load(10_000, 3, 1_250, 8, 500, is_own=True),
            "functions request_machine at once",
            625 + 60 + 1,
            id="of-our-own",
        ),
        # Five rounds.
        pytest.param(
            Load(800, 3, 100, 8, 500, is_own=True, max_machines=20, work_seconds=1_200.0),
            "machines of our own at once",
            4 * 1_201 + 60 + 1,
            id="within-max-machines",
        ),
        # 9,000 beyond the burst at 2 per second, after the first look and before the last start.
        pytest.param(
            Load(10_000, 3, 10_000, 1, 500),
            "machines launched (RunInstances, CreateFleet)",
            4_500 + 120 + 21,
            id="of-one-gpu",
        ),
    ],
)
def test_which_limit_is_the_tightest_depends_on_the_machines(load: Load, name: str, seconds: float) -> None:
    limit = tightest(limits_of(load, Timing()))

    assert (limit.name, limit.least_seconds) == (name, seconds)
    assert limit.source
