"""What a stop does to a training that saves by relaunch_training, and what a save that fails does."""

import multiprocessing
import os
import signal
import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import relaunch_training
from functional.examples.saving import OBJECTS, Attempt, steps_in
from relaunch_training import FileStore, SaveFailedError


def test_sigterm_in_the_middle_of_a_step_ends_the_training_after_the_save_of_that_step(
    attempt: Attempt, tmp_path: Path
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with attempt() as checkpoints:
        step = 0
        while step < 100 and not checkpoints.stopped:
            if step == 7:
                os.kill(os.getpid(), signal.SIGTERM)
                # Whoever asks twice changes nothing.
                os.kill(os.getpid(), signal.SIGTERM)
            step += 1
            if checkpoints.stop_requested or step % 5 == 0:
                checkpoints.save(step, OBJECTS)

    assert step == 8
    assert steps_in(tmp_path) == [(8, 1), (5, 1)]
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_during_a_save_ends_the_training_after_it_with_no_further_step(
    attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = FileStore.put

    def interrupted(*arguments: Any) -> None:
        put(*arguments)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(FileStore, "put", interrupted)
    with attempt() as checkpoints:
        checkpoints.save(5, OBJECTS)

        assert checkpoints.stopped

    assert steps_in(tmp_path) == [(5, 1)]


def test_sigterm_after_the_save_of_a_step_does_not_save_it_again(
    attempt: Attempt, capsys: pytest.CaptureFixture[str]
) -> None:
    with attempt() as checkpoints:
        checkpoints.save(5, OBJECTS)
        os.kill(os.getpid(), signal.SIGTERM)
        assert checkpoints.save(5, OBJECTS) is None

    assert checkpoints.stopped
    assert capsys.readouterr().out.count("step=5") == 1


def test_a_save_that_takes_longer_than_sigterm_leaves_ends_and_the_last_complete_checkpoint_stays(
    attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def slow_file() -> dict[str, bytes]:
        now[0] += 15
        return OBJECTS

    with attempt(stop_seconds=70) as checkpoints:
        checkpoints.save(5, OBJECTS)
        os.kill(os.getpid(), signal.SIGTERM)
        now[0] = 60
        # Whoever asks twice gives no more time.
        os.kill(os.getpid(), signal.SIGTERM)

        assert checkpoints.save(6, slow_file) is None
        assert checkpoints.stopped

    assert steps_in(tmp_path) == [(5, 1)]
    assert "step 6 is not saved: 70 seconds after the signal to stop it was not complete" in capsys.readouterr().err


def test_to_hash_takes_none_of_the_time_that_is_over_and_none_of_its_own(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe = relaunch_training._describe
    uploading = Event()

    def describe_while_uploading(*arguments: Any) -> dict[str, Any]:
        assert uploading.wait(10)
        return describe(*arguments)

    monkeypatch.setattr(FileStore, "put", lambda *_: uploading.set())
    monkeypatch.setattr(relaunch_training, "_describe", describe_while_uploading)
    with attempt(stop_seconds=-1) as checkpoints:
        assert checkpoints.save(5, OBJECTS) is not None
        signal.raise_signal(signal.SIGTERM)
        assert checkpoints.save(6, OBJECTS) is None


def test_a_last_save_that_failed_is_raised_at_the_end_and_one_that_was_made_good_is_not(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise SaveFailedError("the store is out of reach")

    def train(save_again: bool) -> None:
        with attempt() as checkpoints:
            with monkeypatch.context() as broken:
                broken.setattr(FileStore, "put", fail)
                assert checkpoints.save(5, OBJECTS) is None
            if save_again:
                assert checkpoints.save(5, OBJECTS) is not None

    with pytest.raises(SaveFailedError):
        train(save_again=False)
    train(save_again=True)


def test_only_rank_0_saves_and_prints_and_every_rank_stops(
    attempt: Attempt, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with attempt(rank=1) as checkpoints:
        os.kill(os.getpid(), signal.SIGTERM)
        checkpoints.report(1)
        checkpoints.save(1, OBJECTS)

    assert checkpoints.stopped
    assert steps_in(tmp_path) == []
    assert capsys.readouterr().out == ""


def test_a_forked_loader_of_data_still_ends_by_sigterm(attempt: Attempt) -> None:
    with attempt() as checkpoints:
        context = multiprocessing.get_context("fork")
        reading, writing = context.Pipe(duplex=False)
        loader = context.Process(target=lambda: (writing.send("ready"), time.sleep(300)), daemon=True)
        loader.start()
        assert reading.recv() == "ready"
        loader.terminate()
        loader.join(60)
        ended_by = loader.exitcode
        loader.kill()

    assert ended_by == -signal.SIGTERM
    assert not checkpoints.stop_requested
