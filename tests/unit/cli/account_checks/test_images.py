"""Launch templates with an image of their own, instead of a parameter."""

from relaunch.core.checks import Verdict
from relaunch_cli.account_checks.images import TemplateFacts, check_launch_template
from relaunch_cli.deployment.shared_images import is_shared


def test_an_image_by_its_id_is_checked_too() -> None:
    there = TemplateFacts(image="ami-1", image_id="ami-1", image_state="available")
    gone = TemplateFacts(image="ami-1", image_id="ami-1")

    assert check_launch_template("gpu", "lt-1:7", there).verdict is Verdict.OK
    assert check_launch_template("gpu", "lt-1:7", gone).text == "lt-1:7 has the image ami-1, which is gone"


def test_an_image_that_another_account_shares_is_a_problem() -> None:
    facts = TemplateFacts(image="ami-1", image_id="ami-1", image_state="available", is_shared=True)
    check = check_launch_template("gpu", "lt-1:7", facts)

    assert check.text == "lt-1:7 has the image ami-1 of another account, so that every launch is denied"
    assert "aws ec2 copy-image --source-image-id ami-1" in check.to_do
    assert [
        is_shared(image, "111122223333")
        for image in (
            {"OwnerId": "591542846629", "ImageOwnerAlias": "amazon"},
            {"OwnerId": "111122223333"},
            {"OwnerId": "444455556666"},
            {"OwnerId": "679593333241", "ImageOwnerAlias": "aws-marketplace"},
        )
    ] == [False, False, True, True]


def test_an_image_that_is_deregistered_has_its_state() -> None:
    check = check_launch_template(
        "neuron", "lt-1:7", TemplateFacts(image="ami-1", image_id="ami-1", image_state="failed")
    )

    assert (check.verdict, "which is failed" in check.text) == (Verdict.PROBLEM, True)
    assert check.to_do.startswith("relaunch deploy NeuronImageId=")
