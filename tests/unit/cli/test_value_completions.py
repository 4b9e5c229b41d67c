"""What a shell completes of options whose values are known."""

import pytest
from typer.main import get_command

from relaunch_cli.app import app
from relaunch_cli.value_completions import one_of


@pytest.mark.parametrize(
    ("command", "option", "incomplete", "words"),
    [
        ("ps", "state", "F", ["FAILED"]),
        ("plan", "model", "A10G", ["A10G"]),
        ("plan", "neuron_model", "Train", ["Trainium", "Trainium2", "Trainium3"]),
        ("plan", "purchase", "spot", ["spot", "spot-then-on-demand"]),
        ("plan", "cluster", "ac", ["ack", "acs"]),
        ("plan", "instance_type", "g4dn.x", ["g4dn.xlarge"]),
        ("plan", "explained", "p4d.", ["p4d.24xlarge"]),
        ("plan", "region", "eu-central-", ["eu-central-1", "eu-central-2"]),
        ("plan", "interconnect", "", ["efa", "nvlink"]),
        ("plan", "architecture", "arm", ["arm64"]),
        ("amis", "types", "trn1n", ["trn1n.32xlarge"]),
    ],
)
def test_values_are_completed_and_no_files(command: str, option: str, incomplete: str, words: list[str]) -> None:
    (known,) = (each for each in get_command(app).commands[command].params if each.name == option)

    assert [item.value for item in known.shell_complete(None, incomplete)] == words


def test_a_receiver_and_a_notice_of_it_are_completed() -> None:
    notices = get_command(app).commands["notices"].commands
    kinds = {
        name: next(each for each in notices[name].params if "--kind" in each.opts).shell_complete(None, "s")
        for name in ("add", "test")
    }

    assert [item.value for item in kinds["add"]] == ["slack", "sns"]
    assert "started" in [item.value for item in kinds["test"]]


def test_a_word_that_a_shell_would_take_for_two_is_left_out() -> None:
    assert one_of("RTX PRO 6000", "L4")("") == ["L4"]
