"""plan of registered definitions and of files."""

from fakes.builders import make_definition
from fakes.cli_session import flat, rewrite


def test_plan_ranks_what_is_kept_and_groups_what_is_not(relaunch):
    result = relaunch("plan", "resnet")

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["#", "TYPE", "PURCHASE", "ZONE", "$/H", "SAVES", "CAPACITY", "PROVIDER"]
    assert lines[2].split() == ["1", "g4dn.xlarge", "spot", "any", "0.1600", "84%", "g4dn-xlarge-spot"]
    assert "Rejected: 1 of 6 offerings" in lines
    assert any(line.startswith("price-cap  6 → 5  p4d.24xlarge on-demand: ") for line in lines)


def test_a_wide_plan_also_shows_the_accelerator(relaunch):
    assert "1x T4 15GiB" in relaunch("plan", "resnet", columns=120).stdout


def test_plan_of_a_file_plans_all_its_definitions_without_registering_them(relaunch, session, file):
    result = relaunch("plan", str(file), "--json")

    assert [each["definition"] for each in result.document["plans"]] == ["resnet", "bert"]
    assert session.deps.definitions.load_definition("bert") is None


def test_plan_ends_with_4_when_nothing_is_to_be_had(relaunch, session):
    session.deps.definitions.save_definition(make_definition(name="dear", max_price_usd_per_hour=0.01))

    result = relaunch("plan", "dear")
    document = relaunch("plan", "dear", "--json").document["plans"][0]

    assert result.exit_code == 4
    assert "price-cap removed the last 6 of 6 offerings" in flat(result.stdout)
    assert document["is_satisfiable"] is False
    assert {row["filter"] for row in document["offerings"]} == {"price-cap"}
    assert [each for each in document["filters"] if each["before"] and not each["after"]] == [
        {"filter": "price-cap", "before": 6, "after": 0}
    ]


def test_plan_ends_with_3_without_an_active_revision(relaunch, session):
    session.deps.definitions.save_definition(make_definition(name="lost", task_definition="missing"))

    result = relaunch("plan", "lost")

    assert result.exit_code == 3
    assert "the family missing has no ACTIVE revision" in result.stdout


def test_the_plan_of_a_share_has_notices_on_sharing(relaunch, file):
    rewrite(file, "gpu: {}", "gpu: {memory: 2GiB, compute_percent: 30}")

    result = relaunch("plan", str(file))
    documents = relaunch("plan", str(file), "--json").document["plans"]

    assert result.exit_code == 0
    assert "bert: compute_percent is a limit, not a reservation" in result.stderr
    assert [len(each["notices"]) for each in documents] == [0, 3]
