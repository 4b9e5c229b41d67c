"""The idle cost agrees with the stack that is deployed, and with the page that explains it."""

import pytest

from architecture.written_template import written_template
from fakes.repository import REPOSITORY
from relaunch_cli.deployment.idle_cost import idle_costs, total


def test_the_items_are_those_of_the_template() -> None:
    template = written_template("template.yaml")
    queues = [name for name in template.of_type("SQS::Queue") if "DeadLetter" not in name]
    alarms = template.of_type("CloudWatch::Alarm")
    of_machines = [name for name in alarms if template.resources[name].get("Condition") == "WatchesMachines"]
    items = {each.what for each in idle_costs(has_machines=True, has_monitoring=True)}

    assert len(queues) == 6
    assert f"CloudWatch: {len(alarms)} alarms, of which ten are free" in items
    assert len(template.of_type("CloudWatch::Dashboard")) == 2
    assert len(template.of_type("SecretsManager::Secret")) == 1
    assert len(of_machines) in {0, 2}


def test_what_is_told_is_what_the_page_says() -> None:
    page = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")

    assert total(idle_costs(has_machines=False, has_monitoring=True)) == pytest.approx(1.59, abs=0.01)
    assert "About 1.60 USD a month" in page
    assert total(idle_costs(has_machines=True, has_monitoring=True)) == pytest.approx(1.79, abs=0.01)
    assert total(idle_costs(has_machines=True, has_monitoring=False)) == pytest.approx(1.59, abs=0.01)
