"""What the demo shows is true: verified from the records in demo.json, not from its output."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from fakes.demo_evidence import (
    Json,
    complete_manifests,
    entries,
    environment,
    first_stop,
    fleets_of,
    lost_places,
    machines_of,
    moment,
    notices_of,
    origin_of,
    place_of,
    run_tasks,
    tags_of,
    tasks_of,
)
from fakes.demo_process import DemoProcess, running_demo
from fakes.uninterrupted_training import train_alone
from relaunch.core.selection.selection import _COMPARABLE

STORIES = ("push", "upload")
IT_TRAINS = "/120  loss"
# ECS writes milliseconds.
STAMPS_ARE_CUT = timedelta(milliseconds=1)


@dataclass(frozen=True)
class DemoRuns:
    """Two demos that ran at the same time in one folder, one of them until Ctrl-C while it trained."""

    shown: DemoProcess
    interrupted: DemoProcess
    exit_codes: tuple[int, int]
    folder: Path


@pytest.fixture(scope="session")
def runs(built: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoRuns]:
    assert built
    folder = tmp_path_factory.mktemp("demo")
    with running_demo(folder) as shown, running_demo(folder) as interrupted:
        interrupted.read_until(IT_TRAINS)
        shown.observe()
        interrupted.interrupt()
        codes = (shown.finish(), interrupted.finish())
        yield DemoRuns(shown, interrupted, codes, folder)


@pytest.fixture(scope="session")
def evidence(runs: DemoRuns) -> Json:
    return Json(json.loads((runs.folder / "demo.json").read_text()))


@pytest.fixture(scope="session")
def alone(evidence: Json) -> Json:
    return train_alone(evidence["training"]["steps"])


@pytest.fixture(params=STORIES)
def job(request: pytest.FixtureRequest, evidence: Json) -> Json:
    found: Json = evidence["jobs"][request.param]
    return found


class TestTheRuns:
    def test_one_comes_true_while_another_ends_at_ctrl_c(self, runs: DemoRuns) -> None:
        assert runs.exit_codes == (0, 130), runs.shown.errors + runs.interrupted.errors
        assert runs.shown.errors == ""
        assert IT_TRAINS in runs.interrupted.output
        assert runs.interrupted.errors == "demo: interrupted; the local world is removed\n"

    def test_it_shows_what_there_is_to_see(self, runs: DemoRuns) -> None:
        seen = runs.shown.output

        for part in (
            "401, refused", "but INACTIVE", "FILTER", "CreateFleet", "refused:", "launched:", "registered:", "memberOf",
            "requested while", "SIGTERM", "manifest.json", "is terminated", "GitHub ●", "notice ●", "WHEN (UTC)",
        ):  # fmt: skip
            assert part in seen
        lines = map(str.rstrip, seen.splitlines())
        assert [each for each in lines if len(each) > 80 and " " in each.strip()] == []  # one word is whole

    def test_nothing_is_left_but_the_evidence(self, runs: DemoRuns) -> None:
        for demo in (runs.shown, runs.interrupted):
            assert demo.started
            assert demo.remains() == []
        assert [each.name for each in runs.folder.iterdir()] == ["demo.json"]
        assert runs.shown.folders

    def test_each_had_ports_of_its_own(self, runs: DemoRuns, evidence: Json) -> None:
        assert evidence["result"] == "succeeded"
        # Of the emulator, of the simulator, and of the dashboard.
        assert len(runs.shown.ports) == 3
        assert evidence["versions"].keys() >= {"python", "ministack", "aws-sam-cli", "boto3"}


class TestTheEvents:
    def test_only_what_was_signed_started_something(self, evidence: Json) -> None:
        statuses = {each["action"]: each["status"] for each in evidence["actions"] if "status" in each}
        outcomes = [row["body"] for row in evidence["table"] if row["pk"].startswith("EVENTS#")]

        assert statuses == {"forged push": 401, "push": 202}
        assert sorted(each["source"] for each in outcomes) == ["github", "s3"]
        assert [each["job_ids"] for each in outcomes] == [[evidence["jobs"][kind]["job_id"]] for kind in STORIES]

    def test_no_message_was_given_up(self, evidence: Json) -> None:
        assert evidence["dead_letters"].keys() >= {
            f"{queue}DeadLetterQueue" for queue in ("Intake", "Attempts", "Machines", "Warnings", "TaskChanges")
        }
        assert set(evidence["dead_letters"].values()) == {0}


class TestWhatOthersSee:
    def test_the_commit_shows_the_job_at_github_and_the_endpoint_gets_every_notice(self, evidence: Json) -> None:
        statuses = evidence["github_statuses"]
        assert {each["context"] for each in statuses} == {"relaunch/demo"}
        assert all(each["description"].endswith(evidence["jobs"]["push"]["job_id"]) for each in statuses)
        assert [each["state"] for each in statuses] == ["pending"] * (len(statuses) - 1) + ["success"]
        assert [notices_of(evidence, evidence["jobs"][kind]) for kind in STORIES] == [["interrupted", "finished"]] * 2


class TestTheLaunch:
    def test_the_newest_active_revision_runs_in_every_attempt(self, evidence: Json, job: Json) -> None:
        (seen,) = (each for each in evidence["actions"] if each["action"] == "revisions")
        own = {
            name.split(":")[1]: status
            for name, status in seen["revisions"].items()
            if name.startswith("relaunch-trainer:")
        }
        newest = max(int(number) for number, status in own.items() if status == "ACTIVE")

        assert own[str(newest + 1)] == "INACTIVE"
        assert str(newest) != max(number for number, status in own.items() if status == "ACTIVE")
        assert "relaunch-trainer-nightly:1" in seen["revisions"]
        definitions = [each["parameters"]["taskDefinition"] for each in run_tasks(evidence, job)]
        assert [origin_of(evidence, each).rpartition("/")[2] for each in definitions] == [
            f"relaunch-trainer:{newest}"
        ] * 2

    def test_both_attempts_run_the_same_image(self, evidence: Json, job: Json) -> None:
        digests = [each["containers"][0]["imageDigest"] for each in tasks_of(evidence, job)]

        assert len(set(digests)) == 1
        assert len({each["taskDefinitionArn"] for each in tasks_of(evidence, job)}) == 1

    def test_every_request_carries_its_token_its_origin_and_its_constraint(self, evidence: Json, job: Json) -> None:
        requests = run_tasks(evidence, job)

        assert [each["outcome"] for each in requests] == ["ok", "ok"]
        assert [each["parameters"]["startedBy"] for each in requests] == [f"{job['job_id']}/{n}" for n in (1, 2)]
        tokens = [hashlib.sha256(f"{job['job_id']}/{n}/1".encode()).hexdigest() for n in (1, 2)]
        assert [each["parameters"]["clientToken"] for each in requests] == tokens
        for request, attempt in zip(requests, job["attempts"], strict=True):
            on_the_machine = f"ec2InstanceId == {attempt['instance_id']}"
            of_the_type = f"attribute:ecs.instance-type == {attempt['instance_type']}"
            assert request["parameters"]["placementConstraints"] == [
                {"type": "memberOf", "expression": f"{on_the_machine} and {of_the_type}"}
            ]
            assert request["parameters"]["launchType"] == "EC2"
            assert "capacityProviderStrategy" not in request["parameters"]
            assert request["access_key"].startswith("ASIA"), "a role's, not the root user's"

    def test_the_cheapest_that_fits_is_chosen_and_the_rest_is_rejected_with_reasons(
        self, evidence: Json, job: Json
    ) -> None:
        for selection in job["selections"]:
            kept = [each for each in selection["offerings"] if each["verdict"] == "kept"]
            rejected = [each for each in selection["offerings"] if each["verdict"] == "rejected"]
            # To the end of the training, interruptions included.
            first, *others = kept
            costs = [each["expected_cost_usd"] for each in others]
            assert costs == sorted(costs)
            if first["expected_cost_usd"] > costs[0]:
                # Only another one that costs about as much may come before the cheapest, if that was lost to a job.
                assert place_of(others[0]) in lost_places(evidence)
                assert first["expected_cost_usd"] <= _COMPARABLE * costs[0]
            assert all(each["reason"] for each in rejected)
            assert {each["filter"] for each in rejected} >= {"accelerator", "count", "architecture", "price-cap"}

    def test_the_tasks_ran_on_the_machines_that_were_requested_for_them(self, evidence: Json, job: Json) -> None:
        instances = {each["container_instance_arn"]: each["instance_id"] for each in evidence["instances"]}
        hosts = [instances[task["containerInstanceArn"]] for task in tasks_of(evidence, job)]

        assert hosts == [each["instance_id"] for each in machines_of(evidence, job)]
        assert hosts == [each["instance_id"] for each in job["attempts"]]


class TestTheMachines:
    def test_each_machine_is_requested_once_by_a_role_with_a_token_of_its_own(self, evidence: Json, job: Json) -> None:
        requests, machines = fleets_of(evidence, job), machines_of(evidence, job)

        assert len(requests) == len(machines) == 2
        for request, machine in zip(requests, machines, strict=True):
            parameters = request["parameters"]
            assert parameters["ClientToken"] == f"relaunch-{machine['machine_id']}"
            assert tags_of(parameters)["relaunch:machine"] == machine["machine_id"]
            assert tags_of(parameters)["relaunch:image"].endswith(
                tasks_of(evidence, job)[0]["containers"][0]["imageDigest"]
            )
            assert parameters["TargetCapacitySpecification"]["TotalTargetCapacity"] == 1
            assert parameters["LaunchTemplateConfigs"][0]["LaunchTemplateSpecification"]["Version"] == "2"
            assert request["access_key"].startswith("ASIA"), "a role's, not the root user's"

    def test_the_best_offerings_of_the_selection_are_asked_for(self, evidence: Json, job: Json) -> None:
        for request, selection in zip(fleets_of(evidence, job), job["selections"], strict=True):
            overrides = request["parameters"]["LaunchTemplateConfigs"][0]["Overrides"]
            asked = [(each["InstanceType"], each["AvailabilityZone"]) for each in overrides]
            kept = [each for each in selection["offerings"] if each["verdict"] == "kept"]
            assert len(set(asked)) == len(asked) > 1
            assert asked == [(each["instance_type"], each["zone"]) for each in kept[: len(asked)]]

    def test_what_ec2_refuses_is_launched_elsewhere_and_not_asked_for_again(self, evidence: Json) -> None:
        (scarce,) = (each for each in evidence["actions"] if each["action"] == "scarce")
        first, *others = (request for kind in STORIES for request in fleets_of(evidence, evidence["jobs"][kind]))
        refused = (scarce["instance_type"], scarce["zone"])

        def asked(request: Json) -> list[tuple[str, str]]:
            overrides = request["parameters"]["LaunchTemplateConfigs"][0]["Overrides"]
            return [(each["InstanceType"], each["AvailabilityZone"]) for each in overrides]

        assert asked(first)[0] == refused
        assert refused not in [(each["instance_type"], each["zone"]) for each in evidence["instances"]]
        assert all(refused not in asked(each) for each in others)

    def test_the_next_machine_is_requested_after_the_warning_and_before_the_old_task_ends(self, evidence: Json) -> None:
        job = evidence["jobs"]["push"]
        (warning,) = (each for each in evidence["actions"] if each["action"] == "warning")
        _, request = fleets_of(evidence, job)
        old, _ = tasks_of(evidence, job)

        assert moment(request["at"]) < moment(old["stoppedAt"])
        (at,) = (
            moment(each["time"])
            for each in evidence["events"]
            if each["detail-type"] == "EC2 Spot Instance Interruption Warning"
            and each["detail"]["instance-id"] == warning["instance_id"]
        )
        assert at <= moment(request["at"])

    def test_all_that_was_launched_is_terminated_and_paid_for_no_longer(self, evidence: Json) -> None:
        machines = [each for kind in STORIES for each in machines_of(evidence, evidence["jobs"][kind])]
        ended = {
            each["detail"]["instance-id"]
            for each in evidence["events"]
            if each["detail-type"] == "EC2 Instance State-change Notification"
            and each["detail"]["state"] == "terminated"
        }

        launched = {each["instance_id"] for each in evidence["instances"]}
        assert launched == ended == {each["instance_id"] for each in machines}
        assert len(launched) == len(machines) == len(evidence["machines"]) == 4
        assert {each["state"] for each in evidence["instances"]} == {"terminated"}
        assert {each["state"] for each in machines} == {"GONE"}
        assert all(each["billing_ended_at"] for each in evidence["bill"])

    def test_no_machine_is_ended_while_its_task_runs(self, evidence: Json) -> None:
        job = evidence["jobs"]["push"]
        ends = {each["instance_id"]: each["billing_ended_at"] for each in evidence["bill"]}

        for task, machine in zip(tasks_of(evidence, job), machines_of(evidence, job), strict=True):
            assert moment(task["stoppedAt"]) <= moment(ends[machine["instance_id"]]) + STAMPS_ARE_CUT


class TestTheInterruption:
    def test_the_intent_was_in_the_table_before_the_task_was_stopped(self, evidence: Json) -> None:
        job = evidence["jobs"]["push"]
        stop = first_stop(evidence)
        task = stop["parameters"]["task"]

        (stored,) = (
            row
            for row in evidence["stored_at_stop"][task]
            if row["pk"] == f"JOB#{job['job_id']}" and "ATTEMPT" in row["sk"]
        )
        assert stored["body"]["placement"]["task_id"] == task
        assert stored["body"]["intent"]["kind"] == "interruption"
        assert moment(stored["body"]["intent"]["at"]) <= moment(stop["at"])
        assert stored["body"]["stop"] is None
        assert "warning" in stored["body"]["intent"]["detail"]
        assert stop["access_key"].startswith("ASIA")

    def test_a_warning_of_somebody_elses_machine_stops_nothing(self, evidence: Json) -> None:
        at = {each["action"]: moment(each["at"]) for each in evidence["actions"]}
        (another,) = (each for each in evidence["actions"] if each["action"] == "another's warning")
        stop = first_stop(evidence)

        assert at["another's warning"] < at["push"] < at["warning"] < moment(stop["at"]) + STAMPS_ARE_CUT
        assert another["instance_id"] not in {each["instance_id"] for each in evidence["instances"]}

    def test_the_warned_training_saved_on_sigterm_and_lost_nothing(self, evidence: Json) -> None:
        job = evidence["jobs"]["push"]
        (stopped,) = entries(job, 1, "stopped")
        (resumed,) = entries(job, 2, "resumed")

        assert stopped["signal"] == "SIGTERM"
        assert resumed["step"] == stopped["step"] == max(each["step"] for each in entries(job, 1, "step"))

    def test_the_training_without_a_warning_lost_what_was_after_its_last_checkpoint(self, evidence: Json) -> None:
        job = evidence["jobs"]["upload"]
        (resumed,) = entries(job, 2, "resumed")

        assert entries(job, 1, "stopped") == []
        assert 0 < resumed["step"] < max(each["step"] for each in entries(job, 1, "step"))

    def test_stops_are_understood(self, evidence: Json) -> None:
        kinds = {kind: [each["stop"]["kind"] for each in evidence["jobs"][kind]["attempts"]] for kind in STORIES}

        assert kinds == {"push": ["interruption", "success"], "upload": ["host-lost", "success"]}
        assert [evidence["jobs"][kind]["failures"] for kind in STORIES] == [0, 0]
        assert [evidence["jobs"][kind]["interruptions"] for kind in STORIES] == [1, 1]

    def test_the_relaunch_goes_elsewhere_and_resumes_from_the_newest_complete_checkpoint(
        self, evidence: Json, job: Json
    ) -> None:
        first, second = run_tasks(evidence, job)
        newest = max(complete_manifests(evidence, job, moment(second["at"])), key=lambda each: each["step"])
        (resumed,) = entries(job, 2, "resumed")

        before, after = tasks_of(evidence, job)
        assert before["containerInstanceArn"] != after["containerInstanceArn"]
        assert "RELAUNCH_RESUME_URI" not in environment(first)
        assert environment(second)["RELAUNCH_RESUME_URI"].endswith(f"/attempt-1/step-{newest['step']:07d}/")
        assert resumed["step"] == newest["step"]

    def test_what_was_just_lost_is_open_to_all_jobs(self, job: Json) -> None:
        _, second = job["selections"]
        lost = job["attempts"][0]

        (again,) = (
            each
            for each in second["offerings"]
            if all(each[name] == lost[name] for name in ("instance_type", "purchase", "zone"))
        )
        assert again["verdict"] == "kept"


class TestTheEnd:
    def test_every_step_of_every_attempt_has_the_loss_of_an_uninterrupted_training(
        self, job: Json, alone: Json
    ) -> None:
        steps = [each for attempt in (1, 2) for each in entries(job, attempt, "step")]

        assert [(each["step"], each["loss"]) for each in steps] == [
            (each["step"], alone["losses"][each["step"]]) for each in steps
        ]
        assert {each["step"] for each in steps} == set(alone["losses"])

    def test_the_second_attempt_ends_with_the_weights_of_an_uninterrupted_training(
        self, job: Json, alone: Json
    ) -> None:
        (finished,) = entries(job, 2, "finished")

        assert job["state"] == "SUCCEEDED"
        assert finished["weights_sha256"] == alone["weights_sha256"]

    def test_a_job_never_has_two_live_tasks(self, evidence: Json, job: Json) -> None:
        tasks = tasks_of(evidence, job)

        assert [each["startedBy"] for each in tasks] == [f"{job['job_id']}/{n}" for n in (1, 2)]
        for earlier, later in pairwise(tasks):
            assert moment(earlier["stoppedAt"]) <= moment(later["createdAt"])

    def test_manifests_are_written_last(self, evidence: Json) -> None:
        folders = {row["key"].rpartition("/")[0] for row in evidence["checkpoints"]}

        for folder in folders:
            rows = [row for row in evidence["checkpoints"] if row["key"].startswith(f"{folder}/")]
            newest = max(rows, key=lambda row: moment(row["last_modified"]))
            assert "manifest" in newest or not any("manifest" in row for row in rows)

    def test_no_machine_has_anything_to_do(self, evidence: Json) -> None:
        assert evidence["instances"]
        assert all(each["tasks"] == [] for each in evidence["instances"])
        assert {each["lastStatus"] for each in evidence["tasks"]} == {"STOPPED"}
        assert {each["instance_id"] for each in evidence["bill"]} == {
            each["instance_id"] for each in evidence["instances"]
        }

    def test_the_timeline_is_that_of_the_table(self, evidence: Json, job: Json) -> None:
        rows = [row for row in evidence["table"] if row["pk"] == f"JOB#{job['job_id']}" and "TIMELINE" in row["sk"]]
        stored = [(row["body"]["state"], row["body"]["event"]) for row in sorted(rows, key=lambda row: row["sk"])]

        assert stored == [(each["state"], each["event"]) for each in job["timeline"]]
        assert stored[0][0] == "WAITING"
        assert Counter(state for state, _ in stored)["SUCCEEDED"] == 1
        assert stored[-1][0] == "SUCCEEDED"
