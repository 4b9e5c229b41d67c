"""The questions about a training: asked where somebody answers, else answered by options and defaults."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from relaunch_cli.errors import CommandError, did_you_mean
from relaunch_cli.repository_setup.training import AcceleratorKind, BaseImage, Training, read_command, read_uploads

_Choice = TypeVar("_Choice", AcceleratorKind, BaseImage)
Ask = Callable[[str, str, Callable[[str], object]], str]
"""Asks a question with a default, until the check raises no CommandError; returns the answer."""

_MOST_DIGITS = 6
_KIND_QUESTION = "What it needs: gpu (whole GPUs), share (of one GPU) or neuron (Trainium)"
# What an answer is checked with before the others are known.
_IN_DOUBT: Mapping[str, Any] = {"name": "training"}
# A share is of a small GPU's 16 GiB; and a machine of a share has others beside it.
_SHARE_DEFAULTS: Mapping[str, Any] = {"gpu_memory_gib": 4, "vcpus": 1, "memory_gib": 4}
# Of each device: most of trn1.2xlarge (8 vCPU, 32 GiB), and a sixteenth of most of trn1.32xlarge. The compiler runs in
# the container, and is killed at its limit ("Killed" in aws-neuron-sdk issue 1222, with 32 GiB).
_VCPUS_OF_A_NEURON_DEVICE = 6
_GIB_OF_A_NEURON_DEVICE = 28
_NEURON_DEVICES_OF_A_LARGE_MACHINE = 16


def read_training(given: Mapping[str, Any], known_name: str, ask: Ask | None) -> Training:
    """Return the training of the options that are given, and of the answers to what they leave open.

    `known_name` is its name if nobody says another one.

    Raises:
        CommandError: an option or answer is not possible.
    """
    answers = dict(given)
    # Before any question: nobody answers four for an option that is refused then.
    Training(**{**_IN_DOUBT, **{name: _read(name, value) for name, value in given.items()}})

    def settle(name: str, question: str, default: str) -> None:
        if name not in answers and ask is not None:
            answers[name] = ask(question, default, lambda answer: Training(**{**_IN_DOUBT, name: _read(name, answer)}))

    settle("name", "Name of the training", known_name)
    answers.setdefault("name", known_name)
    settle("kind", _KIND_QUESTION, AcceleratorKind.GPU.value)
    kind = _read("kind", answers.get("kind", AcceleratorKind.GPU))
    if kind is AcceleratorKind.NEURON:
        settle("count", "How many Neuron devices", "1")
    else:
        if kind is AcceleratorKind.GPU:
            settle("count", "How many GPUs of one machine", "1")
        settle(
            "gpu_memory_gib",
            "Least memory of each GPU, or of the share, in GiB",
            "4" if kind is AcceleratorKind.SHARE else "16",
        )
    settle("command", "What runs in the container", "python train.py")
    if kind is AcceleratorKind.SHARE:
        answers = {**_SHARE_DEFAULTS, **answers}
    read = {name: _read(name, value) for name, value in answers.items()}
    return Training(**{**_shares_of_the_machine(kind, max(read.get("count", 1), 1)), **read})


def _shares_of_the_machine(kind: AcceleratorKind, count: int) -> Mapping[str, int]:
    """Return the vCPUs and the memory that a container reserves if nobody says how much."""
    if kind is AcceleratorKind.NEURON:
        # A job of two devices or more has a machine of sixteen to itself (docs/derived-revisions.md).
        devices = 1 if count == 1 else _NEURON_DEVICES_OF_A_LARGE_MACHINE
        return {"vcpus": devices * _VCPUS_OF_A_NEURON_DEVICE, "memory_gib": devices * _GIB_OF_A_NEURON_DEVICE}
    # Machines with more GPUs have more of the rest: the smallest with eight has 96 vCPUs and 488 GiB.
    return {"vcpus": 2 * count, "memory_gib": 8 * count}


def _read(name: str, value: Any) -> Any:
    match name:
        case "kind":
            return _choice(AcceleratorKind, str(value))
        case "command":
            return read_command(str(value))
        case "uploads":
            return read_uploads(str(value))
        case "base_image":
            return _choice(BaseImage, str(value))
        case "name" | "duration" | "is_mounting" | "has_webhook":
            return value
        case _:
            return _number(str(value))


def _number(text: str) -> int:
    if not text.strip().isdecimal() or len(text.strip()) > _MOST_DIGITS:
        raise CommandError(f"{text!r} is no whole number")
    return int(text)


def _choice(choices: type[_Choice], text: str) -> _Choice:
    known = [str(each) for each in choices]
    if text not in known:
        raise CommandError(f"{text!r} is none of {', '.join(known)}", did_you_mean(text, known))
    return choices(text)
