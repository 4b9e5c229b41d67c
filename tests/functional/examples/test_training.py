"""The example training as a user runs it: real processes, real signals, checkpoints in a folder."""

import ast
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from functional.examples.attempts import EXAMPLES, Job
from relaunch_training import Checkpoints
from train.model import Learner
from train.train import Plan, train


def path_of(uri: str) -> Path:
    return Path(urlsplit(uri).path)


def test_an_uninterrupted_training_reports_a_falling_loss_for_every_step(job: Job) -> None:
    training = job.run()

    losses = [event["loss"] for event in training.named("step")]
    assert [event["step"] for event in training.named("step")] == list(range(1, 201))
    assert losses[0] > 0.4
    assert losses[99] < losses[0] / 10
    assert losses[199] < losses[99]
    assert training.result[0] == losses[-1]
    assert training.process.returncode == 0


def test_every_machine_and_python_computes_the_same_bits(job: Job) -> None:
    assert job.run().result == (
        0.006564265118189065,
        "382dd6c1de469b3a71228f2acf5e6287e8aeb5a0b5e9231a7b9123fe62d404c5",
    )


def test_checkpoints_are_saved_every_so_many_steps_and_at_the_end(job: Job) -> None:
    training = job.run("--steps", "50", "--checkpoint-every", "20")

    assert [event["step"] for event in training.named("checkpoint")] == [20, 40, 50]


def test_a_training_stopped_in_its_first_delay_saves_that_step_and_resumes_to_the_same_end(job: Job) -> None:
    uninterrupted = job.run_alone("--steps", "30")
    interrupted = job.start("--steps", "30", "--step-delay-seconds", "600")

    status = interrupted.interrupt_after(1)
    resumed = job.run("--steps", "30", resume=interrupted.named("checkpoint")[-1]["uri"])

    assert status == 0
    assert interrupted.events[-1] == {"event": "stopped", "attempt": 2, "step": 1, "signal": "SIGTERM"}
    assert resumed.named("step")[0]["step"] == 2
    assert resumed.result == uninterrupted.result


@pytest.mark.parametrize("step", [20, 33], ids=["at-a-checkpoint", "between-checkpoints"])
def test_a_training_stopped_while_it_runs_resumes_to_the_same_end(job: Job, step: int) -> None:
    uninterrupted = job.run_alone()
    held = path_of(job.uri).parent / "hold"
    held.touch()
    interrupted = job.start(*("--step-delay-seconds", "0.03", "--hold-at-step", "60", "--hold-while", held.as_uri()))

    interrupted.read_until(step)
    interrupted.process.send_signal(signal.SIGTERM)
    held.unlink()
    interrupted.finish()
    resumed = job.run(resume=interrupted.named("checkpoint")[-1]["uri"])

    (stopped,) = interrupted.named("stopped")
    assert step <= stopped["step"] < 200
    assert interrupted.named("checkpoint")[-1]["step"] == stopped["step"]
    assert interrupted.named("step") + resumed.named("step") == [
        {**event, "attempt": 2 if event["step"] <= stopped["step"] else 3} for event in uninterrupted.named("step")
    ]
    assert resumed.result == uninterrupted.result


def test_a_training_interrupted_again_and_again_ends_as_if_it_never_was(job: Job) -> None:
    uninterrupted = job.run_alone("--steps", "20")
    resume = None

    for step in range(1, 5):
        attempt = job.start("--steps", "20", "--step-delay-seconds", "600", resume=resume)
        attempt.interrupt_after(step)
        resume = attempt.named("checkpoint")[-1]["uri"]
    resumed = job.run("--steps", "20", resume=resume)

    assert resumed.result == uninterrupted.result


def test_a_training_stopped_before_it_made_progress_saves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoints = Checkpoints(f"file://{tmp_path}/attempt-2/", attempt=2)
    checkpoints.stop_requested = signal.SIGTERM

    train(Plan(20, 0, 5, 0.05), Learner.start(0.05, seed=3), checkpoints)

    assert capsys.readouterr().out == '{"event": "stopped", "attempt": 2, "step": 0, "signal": "SIGTERM"}\n'
    assert list(tmp_path.iterdir()) == []


def test_a_training_takes_its_time_between_sigterm_and_the_save_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    checkpoints = Checkpoints(f"file://{tmp_path}/attempt-1/")
    plan = Plan(2, 0, 5, 0.05, stop_delay_seconds=120)

    train(plan, Learner.start(0.05, seed=3), checkpoints)
    checkpoints.stop_requested = signal.SIGTERM
    train(plan, Learner.start(0.05, seed=3), checkpoints)

    assert slept == [120]


def test_a_training_is_held_at_a_step_until_the_object_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, learner, waited = tmp_path / "hold", Learner.start(0.05, seed=3), list[int]()
    held.touch()

    def look_away(_seconds: float) -> None:
        waited.append(learner.step)
        if len(waited) == 3:
            held.unlink()

    monkeypatch.setattr(time, "sleep", look_away)
    plan = Plan(5, 0, 5, 0.05, hold_at_step=2, hold_while=f"file://{held}")

    train(plan, learner, Checkpoints())

    assert waited == [2, 2, 2]
    assert learner.step == 5


def test_sigterm_ends_the_wait_at_a_step_and_the_save_is_held_until_the_object_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, learner = tmp_path / "hold", Learner.start(0.05, seed=3)
    checkpoints = Checkpoints(f"file://{tmp_path}/attempt-1/")
    held.touch()
    saved = list[bool]()

    def look_away(_seconds: float) -> None:
        saved.append((tmp_path / "attempt-1").exists())
        checkpoints.stop_requested = signal.SIGTERM
        if len(saved) == 4:
            held.unlink()

    monkeypatch.setattr(time, "sleep", look_away)
    plan = Plan(5, 0, 5, 0.05, hold_at_step=2, hold_while=f"file://{held}")

    train(plan, learner, checkpoints)

    assert saved == [False] * 4
    assert learner.step == 2
    assert (tmp_path / "attempt-1" / "step-0000002" / "manifest.json").exists()


def test_a_finished_training_that_is_run_again_finishes_again_at_once(job: Job) -> None:
    first = job.run("--steps", "20")

    again = job.run("--steps", "20", resume=first.named("checkpoint")[-1]["uri"])

    assert again.process.returncode == 0
    assert again.named("step") == again.named("checkpoint") == []
    assert again.result == first.result


def test_a_damaged_object_is_named_and_the_older_checkpoint_is_used(job: Job) -> None:
    uninterrupted = job.run("--steps", "50")
    damaged = path_of(job.uri) / "attempt-1/step-0000040/weights.json"
    damaged.write_bytes(damaged.read_bytes().replace(b"1", b"2"))
    (path_of(job.uri) / "attempt-1/step-0000050/manifest.json").unlink()

    resumed = job.run("--steps", "50", resume=f"{job.uri}attempt-1/step-0000040")

    (rejected,) = resumed.named("checkpoint_rejected")
    assert rejected["uri"] == f"{job.uri}attempt-1/step-0000040/"
    assert re.fullmatch(
        r"\{'key': 'weights.json', 'size': (7..), .*\} in the manifest is .'size': \1, .*", rejected["reason"]
    )
    assert resumed.named("resumed")[0]["step"] == 20
    assert resumed.result == uninterrupted.result


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("damage", "name", "reason"),
    [
        pytest.param(Path.unlink, "manifest.json", "manifest.json is missing", id="no-manifest"),
        pytest.param(Path.unlink, "state.json", "state.json is missing", id="object-missing"),
        pytest.param(cut_short, "state.json", "in the manifest is", id="object-cut-short"),
        pytest.param(cut_short, "manifest.json", "manifest.json cannot be read", id="manifest-cut-short"),
    ],
)
def test_a_training_whose_only_checkpoint_is_unusable_says_so_and_starts_over(
    job: Job, damage: Callable[[Path], None], name: str, reason: str
) -> None:
    uninterrupted = job.run("--steps", "20")
    damage(path_of(job.uri) / "attempt-1/step-0000020" / name)

    resumed = job.run("--steps", "20", resume=f"{job.uri}attempt-1/step-0000020/")

    (rejected,) = resumed.named("checkpoint_rejected")
    assert reason in rejected["reason"]
    assert resumed.named("step")[0]["step"] == 1
    assert resumed.result == uninterrupted.result


def test_the_declared_input_sets_the_learning_rate(job: Job) -> None:
    usual = job.run_alone("--steps", "5")

    slower = job.run_alone("--steps", "5", RELAUNCH_INPUT_LEARNING_RATE="1e-3")

    assert slower.named("started")[0]["learning_rate"] == 0.001
    assert slower.result[0] > usual.result[0]


def test_a_checkpoint_of_another_learning_rate_is_refused(job: Job) -> None:
    job.run("--steps", "20")

    training = job.start("--learning-rate", "0.2", resume=f"{job.uri}attempt-1/step-0000020/")

    assert training.finish() == 2
    assert "was trained with a learning rate of 0.05, not 0.2" in training.complaint


def test_a_loss_that_is_not_finite_fails_the_training(job: Job) -> None:
    training = job.start("--learning-rate", "1e200")

    assert training.finish() == 1
    assert "try a smaller learning rate" in training.complaint
    assert training.named("checkpoint") == []


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"TRAIN_STEPS": "0"}, "0 is not 1 or more"),
        ({"TRAIN_STEPS": "many"}, "argument --steps: invalid whole_number value: 'many'"),
        ({"TRAIN_STEP_DELAY_SECONDS": "-1"}, "-1 is not a number of seconds"),
        ({"TRAIN_STOP_DELAY_SECONDS": "inf"}, "inf is not a number of seconds"),
        ({"RELAUNCH_INPUT_LEARNING_RATE": "e..1"}, "argument --learning-rate: invalid learning_rate value: 'e..1'"),
        ({"RELAUNCH_INPUT_LEARNING_RATE": "0"}, "0 is not a learning rate above 0"),
        (
            {"RELAUNCH_CHECKPOINT_URI": "s3:/checkpoints"},
            "is neither s3://bucket/prefix/, oss://bucket/prefix/ nor file:///folder/",
        ),
        ({"TRAIN_HOLD_AT_STEP": "0"}, "0 is not 1 or more"),
        ({"TRAIN_HOLD_WHILE": "hold"}, "is neither s3://bucket/prefix/"),
    ],
)
def test_unusable_settings_are_refused_before_the_first_step(
    job: Job, environment: dict[str, str], message: str
) -> None:
    training = job.start(**environment)

    assert training.finish() == 2
    assert message in training.complaint
    assert training.named("step") == []


def test_the_training_needs_the_standard_library_and_boto3_only() -> None:
    imported = {
        name.split(".")[0]
        for source in (EXAMPLES / "relaunch_training.py", *(EXAMPLES / "train").glob("*.py"))
        for node in ast.walk(ast.parse(source.read_text()))
        for name in imported_names(node)
    }

    assert imported - sys.stdlib_module_names == {"boto3", "botocore", "relaunch_training"}


def imported_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module]
    return []
