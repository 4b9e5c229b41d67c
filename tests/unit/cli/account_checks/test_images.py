"""Launch templates with an image of their own, instead of a parameter."""

from relaunch.core.checks import Verdict
from relaunch_cli.account_checks.images import TemplateFacts, check_launch_template


def test_an_image_by_its_id_is_checked_too() -> None:
    there = TemplateFacts(image="ami-1", image_id="ami-1", image_state="available")
    gone = TemplateFacts(image="ami-1", image_id="ami-1")

    assert check_launch_template("gpu", "lt-1:7", there).verdict is Verdict.OK
    assert check_launch_template("gpu", "lt-1:7", gone).text == "lt-1:7 has the image ami-1, which is gone"


def test_an_image_that_is_deregistered_has_its_state() -> None:
    check = check_launch_template(
        "neuron", "lt-1:7", TemplateFacts(image="ami-1", image_id="ami-1", image_state="failed")
    )

    assert (check.verdict, "which is failed" in check.text) == (Verdict.PROBLEM, True)
    assert check.to_do.startswith("relaunch deploy NeuronImageId=")
