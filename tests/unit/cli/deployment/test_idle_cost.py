"""The idle cost agrees with the stack that is deployed, and with the page that explains it."""

import pytest

from architecture.written_template import written_template
from fakes.repository import REPOSITORY
from relaunch_cli.deployment.idle_cost import idle_costs, total


def costs(*, machines: bool = True, monitoring: bool = True, webhook: bool = True, uploads: bool = True) -> float:
    return total(idle_costs(has_machines=machines, has_monitoring=monitoring, has_webhook=webhook, has_uploads=uploads))


@pytest.mark.parametrize(("notices", "topics"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("webhook", "uploads"), [(False, False), (False, True), (True, False), (True, True)])
def test_the_items_are_those_of_the_template(webhook: bool, uploads: bool, notices: bool, topics: bool) -> None:
    template = written_template("template.yaml")
    absent = {name for name, is_there in (("HasWebhook", webhook), ("TakesUploads", uploads)) if not is_there}
    absent |= set() if webhook else {"WatchesWebhook"}
    absent |= set() if notices else {"SendsNotices", "WatchesNotices"}
    absent |= set() if topics else {"TakesTopics"}
    there = {name for name, each in template.resources.items() if each.get("Condition") not in absent}
    queues = [name for name in template.of_type("SQS::Queue") if "DeadLetter" not in name and name in there]
    alarms = [name for name in template.of_type("CloudWatch::Alarm") if name in there]
    secrets = [name for name in template.of_type("SecretsManager::Secret") if name in there]
    items = idle_costs(
        has_machines=True,
        has_monitoring=True,
        has_webhook=webhook,
        has_uploads=uploads,
        has_notices=notices,
        has_topics=topics,
    )
    told = {each.what for each in items}

    watched = template.resources["ReconcileFunction"]["Properties"]["Environment"]["Variables"]
    _, counted = watched["RELAUNCH_WATCHED_QUEUE_URLS"]["Fn::Join"]
    counts = sum("Fn::If" not in each or each["Fn::If"][0] not in absent for each in counted)
    requests = 43_830 * 15 * len(queues) + 4_383 * counts
    assert any(
        each == f"SQS: {requests / 1e6:.2f} million requests, which Lambda makes for {len(queues)} queues"
        for each in told
    )
    assert f"CloudWatch: {len(alarms)} alarms, of which ten are free" in told
    assert len(template.of_type("CloudWatch::Dashboard")) == 3
    assert ("Secrets Manager: the webhook's secret" in told) == bool(secrets)


def test_without_machines_capacity_providers_have_an_alarm_of_theirs() -> None:
    parts = {"has_monitoring": True, "has_webhook": False, "has_uploads": False}
    lines = [
        next(
            each.what
            for each in idle_costs(has_machines=machines, has_providers=providers, **parts)
            if "alarms" in each.what
        )
        for machines, providers in ((False, False), (False, True), (True, False), (True, True))
    ]

    assert [each.split()[1] for each in lines] == ["16", "17", "18", "18"]


def test_a_new_deployment_costs_little_more_than_a_dollar() -> None:
    assert costs(webhook=False, uploads=False) == pytest.approx(1.73, abs=0.005)


def test_what_is_told_is_what_the_page_says() -> None:
    page = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")

    assert costs(webhook=False, uploads=False) == pytest.approx(1.73, abs=0.005)
    assert "About 1.73 USD a month" in page
    assert costs() == pytest.approx(2.59, abs=0.01)
    assert "2.59 with both" in page
    assert costs() - costs(machines=False) == pytest.approx(0.20, abs=0.005)
    assert costs(uploads=False) - costs(uploads=False, webhook=False) == pytest.approx(0.60, abs=0.005)
    assert costs(webhook=False) - costs(uploads=False, webhook=False) == pytest.approx(0.26, abs=0.005)


def test_what_notices_add_is_what_the_pages_say() -> None:
    parts = {"has_machines": True, "has_monitoring": True, "has_webhook": False, "has_uploads": False}
    added = total(idle_costs(**parts, has_notices=True)) - total(idle_costs(**parts))

    assert added == pytest.approx(0.365, abs=0.005)
    assert "an alarm beyond those that are free | 0.37 |" in (REPOSITORY / "docs" / "deploy.md").read_text("utf-8")


def test_what_topics_add_is_what_the_parameter_says() -> None:
    parts = {"has_machines": True, "has_monitoring": True, "has_webhook": False, "has_uploads": True}
    added = total(idle_costs(**parts, has_topics=True)) - total(idle_costs(**parts))

    assert added == pytest.approx(0.265, abs=0.005)
    said = written_template("template.yaml").parameters["SnsTopicArns"]["Description"]
    assert "about 0.26 USD a month" in " ".join(said.split())
