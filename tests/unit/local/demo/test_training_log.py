from relaunch_local.demo.training_log import BLOCKS, TrainingLog, draw_losses, sample_evenly


def log_of(*lines: tuple[int, str]) -> TrainingLog:
    log = TrainingLog()
    for attempt, line in lines:
        log.add_line(attempt, line)
    return log


class TestTrainingLog:
    def test_lines_that_are_not_the_trainings_are_left_out(self) -> None:
        log = log_of((1, "Traceback (most recent call last):"), (1, "[1, 2]"), (1, '{"level": "INFO"}'), (1, "7"))

        assert log.entries[1] == []

    def test_losses_are_kept_by_attempt_and_step(self) -> None:
        log = log_of(
            (1, '{"event": "step", "step": 1, "loss": 0.5}'), (2, '{"event": "step", "step": 1, "loss": 0.25}')
        )

        assert log.losses(1) == {1: 0.5}
        assert log.losses(2) == {1: 0.25}

    def test_a_step_that_was_taken_twice_counts_as_the_later_attempt_took_it(self) -> None:
        log = log_of(
            (2, '{"event": "step", "step": 2, "loss": 0.2}'),
            (1, '{"event": "step", "step": 1, "loss": 0.5}'),
            (1, '{"event": "step", "step": 2, "loss": 0.3}'),
        )

        assert log.loss_curve() == {1: (1, 0.5), 2: (2, 0.2)}

    def test_an_attempt_starts_from_the_step_it_resumed(self) -> None:
        log = log_of((2, '{"event": "resumed", "step": 40}'))

        assert (log.first_step(1), log.first_step(2)) == (0, 40)
        assert (log.last_step(1), log.last_step(2)) == (0, 0)

    def test_the_newest_entry_of_a_kind_is_found(self) -> None:
        log = log_of((1, '{"event": "checkpoint", "step": 20}'), (1, '{"event": "checkpoint", "step": 40}'))

        assert log.find(1, "checkpoint") == {"event": "checkpoint", "step": 40}
        assert log.find(1, "stopped") is None


class TestDrawing:
    def test_a_loss_that_falls_by_the_same_factor_falls_by_the_same_height(self) -> None:
        assert draw_losses([2.0**-power for power in range(8)]) == BLOCKS[::-1]

    def test_a_loss_that_stays_is_flat_and_one_of_zero_is_lowest(self) -> None:
        assert draw_losses([0.5, 0.5]) == BLOCKS[0] * 2
        assert draw_losses([1.0, 0.0]) == BLOCKS[-1] + BLOCKS[0]
        assert draw_losses([]) == ""

    def test_thinning_keeps_both_ends_and_leaves_few_values_alone(self) -> None:
        assert sample_evenly(range(100), 4) == [0, 33, 66, 99]
        assert sample_evenly([1, 2], 4) == [1, 2]
