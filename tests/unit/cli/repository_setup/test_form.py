from collections.abc import Callable

import pytest

from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.form import read_training
from relaunch_cli.repository_setup.training import AcceleratorKind, BaseImage, Training, Uploads


class Answers:
    """Somebody who answers; what is not in `given` is left at its default."""

    def __init__(self, **given: str) -> None:
        self.given = given
        self.questions: list[str] = []

    def __call__(self, question: str, default: str, check: Callable[[str], object]) -> str:
        self.questions.append(question)
        answer = next((answer for word, answer in self.given.items() if word in question), default)
        check(answer)
        return answer


def test_without_anybody_to_ask_the_defaults_hold():
    assert read_training({}, "vision", None) == Training("vision")


def test_what_is_not_given_is_asked_and_what_is_given_is_not():
    answers = Answers(How="4", runs="python -m train")

    training = read_training({"gpu_memory_gib": "24"}, "vision", answers)

    assert training == Training(
        "vision", count=4, gpu_memory_gib=24, vcpus=8, memory_gib=32, command=("python", "-m", "train")
    )
    assert [question.split()[0] for question in answers.questions] == ["Name", "What", "How", "What"]


def test_a_share_and_neuron_devices_are_asked_about_what_they_need():
    share, neuron = Answers(needs="share"), Answers(needs="neuron", How="2")

    assert read_training({}, "vision", share) == Training(
        "vision", AcceleratorKind.SHARE, gpu_memory_gib=4, vcpus=1, memory_gib=4
    )
    assert not [question for question in share.questions if question.startswith("How many")]
    assert read_training({}, "vision", neuron) == Training(
        "vision", AcceleratorKind.NEURON, count=2, vcpus=96, memory_gib=448
    )
    one = read_training({"kind": "neuron", "vcpus": 4}, "vision", None)
    assert one == Training("vision", AcceleratorKind.NEURON, vcpus=4, memory_gib=28)


def test_options_are_read():
    given = {
        "name": "resnet",
        "command": "python x.py",
        "uploads": "s3://acme-data/in/",
        "base_image": "python",
        "is_mounting": True,
        "duration": "1d",
    }

    assert read_training(given, "vision", None) == Training(
        "resnet",
        command=("python", "x.py"),
        uploads=Uploads("acme-data", "in/"),
        base_image=BaseImage.PYTHON,
        is_mounting=True,
        duration="1d",
    )


@pytest.mark.parametrize(
    ("given", "reason", "hint"),
    [
        ({"kind": "gpus"}, "'gpus' is none of gpu, share, neuron", "did you mean gpu?"),
        ({"base_image": "pytorch"}, "'pytorch' is none of deep-learning-container, python", ""),
        ({"count": "many"}, "'many' is no whole number", ""),
        ({"memory_gib": "-1"}, "'-1' is no whole number", ""),
    ],
)
def test_an_answer_that_is_not_possible_is_refused(given, reason, hint):
    with pytest.raises(CommandError) as refused:
        read_training(given, "vision", None)

    assert refused.value.message == reason
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    ("given", "answers", "reason", "asked"),
    [
        ({}, {"Name": "My Training"}, "'My Training' is no name", 1),
        ({}, {"needs": "gpus"}, "'gpus' is none of gpu, share, neuron", 2),
        ({}, {"How": "two"}, "'two' is no whole number", 3),
        ({}, {"How": "99"}, "not 99", 3),
        ({}, {"Least": "0"}, "at least 1 GiB", 4),
        ({}, {"runs": "python 'x"}, "is no command", 5),
        ({"duration": "long"}, {}, "'long' is no duration", 0),
    ],
)
def test_each_answer_is_checked_before_the_next_question(given, answers, reason, asked):
    somebody = Answers(**answers)

    with pytest.raises(CommandError, match=reason):
        read_training(given, "vision", somebody)

    assert len(somebody.questions) == asked
