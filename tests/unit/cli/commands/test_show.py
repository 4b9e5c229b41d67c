"""show."""

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.definition import InputRule


def test_show_has_the_facts_and_a_line_per_attempt(relaunch, session):
    job_id = session.run_interrupted_job()
    session.clock.advance(3600)

    lines = relaunch("show", job_id).stdout.splitlines()
    document = relaunch("show", job_id, "--json").document

    assert lines[0].split() == ["Job", job_id]
    assert any(line.startswith("Ran         3h00m, 1 interruption, 0 failures, about $0.48") for line in lines)
    assert [attempt["purchase"] for attempt in document["attempts"]] == ["spot", "spot"]
    assert document["attempts"][0]["stop"]["kind"] == "interruption"
    assert document["run_seconds"] == pytest.approx(3 * 3600 + 40)
    assert document["state"] == "RUNNING"


def test_inputs_of_a_job_are_shown(relaunch, session):
    session.deps.definitions.save_definition(make_definition(inputs={"rate": InputRule("[0-9.]+", "0.1")}))

    assert "rate=0.1" in relaunch("show", session.submit()).stdout
