"""events."""

from fakes.builders import NOW
from fakes.cli_session import flat


def test_events_say_why_nothing_was_started(relaunch, session):
    session.deps.events.record_event("github:push:1", "github", "no job definition watches github acme/other", [], NOW)

    text = relaunch("events").stdout
    document = relaunch("events", "--json").document["events"]

    assert "no job definition watches github acme/other" in flat(text)
    assert document[0]["identity"] == "github:push:1"
    assert document[0]["job_ids"] == []


def test_without_events_the_setup_is_suggested(relaunch):
    note = " ".join(relaunch("events").stderr.split())
    assert "is the webhook set up" in note
    assert "at most three tags pushed at once" in note
