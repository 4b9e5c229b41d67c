"""The region of the environment and of the profile."""

import pytest

from fakes.cli_session import invoke
from relaunch_cli.aws.configuration import configured_region

pytestmark = pytest.mark.usefixtures("_no_configuration")


def test_a_region_of_the_profile_is_the_one_planned_for(monkeypatch, tmp_path):
    (tmp_path / "config").write_text("[default]\nregion = eu-west-1\n[profile far]\nregion = ap-south-1\n")

    assert configured_region() == "eu-west-1"
    monkeypatch.setenv("AWS_PROFILE", "far")
    assert configured_region() == "ap-south-1"
    assert "planned offline, for ap-south-1" in invoke("plan", "--offline", "--gpu", "1").stderr
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    assert configured_region() == "us-west-2"


def test_a_configuration_that_cannot_be_read_names_no_region(tmp_path):
    (tmp_path / "config").write_text("region = eu-west-1\n")

    assert configured_region() == ""
