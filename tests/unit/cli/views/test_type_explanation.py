"""plan --explain."""

from dataclasses import replace

from fakes.cli_session import flat
from relaunch_cli.views.type_explanation import explain_type


def test_a_type_that_was_not_chosen_is_explained(relaunch):
    result = relaunch("plan", "--gpu", "1", "--gpu-memory", "24GiB", "--explain", "g4dn.xlarge")

    text = flat(result.stdout)
    assert result.exit_code == 0
    assert "g4dn.xlarge is not chosen 1x T4, 4 vCPU, 16 GiB" in text
    assert "spot on g4dn-xlarge-spot passes manufacturer, allow-list, accelerator, purpose, model, count fails" in text
    assert "its GPU has 15 GiB of memory; 24 GiB are asked for" in text


def test_a_type_that_would_do_is_explained_by_what_is_before_it(relaunch):
    text = flat(relaunch("plan", "--gpu", "1", "--purchase", "spot", "--explain", "g6.xlarge").stdout)

    assert "spot on g6-xlarge-spot passes every filter ranks 3 of 3 offerings, at $0.4500/h" in text
    assert "the first is g4dn.xlarge spot, at $0.1600/h" in text
    assert "on-demand on g6-xlarge-on-demand passes" in text
    assert "fails purchase: the job's purchase is spot" in text


def test_the_chosen_type_is_said_to_be_chosen(relaunch):
    text = flat(relaunch("plan", "--gpu", "1", "--purchase", "spot", "--explain", "g4dn.xlarge").stdout)

    assert "g4dn.xlarge is chosen" in text
    assert "ranks first of 3 offerings" in text


def test_a_type_without_an_offering_is_said_to_have_none(relaunch):
    result = relaunch("plan", "--gpu", "1", "--explain", "p5.48xlarge")

    assert "no capacity provider of the stack has it; --all-types" in flat(result.stdout)


def test_the_upper_limit_of_a_price_is_named_as_such_and_an_unknown_price_too(relaunch, session):
    unknown = {
        "g5.xlarge": {"price_usd_per_hour": None},
        "g6.xlarge": {"price_usd_per_hour": None, "on_demand_usd_per_hour": None},
    }
    session.offerings.available = tuple(
        replace(each, **unknown.get(each.instance_type.name, {})) for each in session.offerings.available
    )
    options = ("plan", "--gpu", "1", "--purchase", "spot", "--estimated-duration", "1h", "--explain")

    assert "at up to $1.0000/h and up to $1." in flat(relaunch(*options, "g5.xlarge").stdout)
    assert "at an unknown price; the first is" in flat(relaunch(*options, "g6.xlarge").stdout)


def test_a_type_that_is_nowhere_has_no_verdict():
    assert explain_type([], "g5.xlarge") == []
