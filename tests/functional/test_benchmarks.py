"""Every benchmark runs and prints its tables; what they measure is never asserted, what they count is."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.__main__ import main

STANDALONE = ("webhook", "decision", "selection", "speeds", "market", "dashboard", "gangs")
BUILT = ("calls", "functions", "kubernetes", "emulator", "world", "command", "deployment")


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """The tables of each benchmark, measured in one round, in this process: it has imported what they need."""

    def run(*names: str) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", ["benchmarks", *names, "--rounds", "1", "--json"])
        main()
        return {each["name"]: each["tables"] for each in json.loads(capsys.readouterr().out)["benchmarks"]}

    return run


def column(table: dict[str, Any], name: str) -> list[Any]:
    return [row[table["columns"].index(name)] for row in table["rows"]]


def assert_filled(tables: list[dict[str, Any]]) -> None:
    assert tables
    for table in tables:
        assert table["rows"], table["title"]
        assert all(len(row) == len(table["columns"]) for row in table["rows"])


def test_benchmarks_that_need_no_build_fill_their_tables(measure: Callable[..., dict[str, Any]]) -> None:
    measured = measure(*STANDALONE)

    assert set(measured) == set(STANDALONE)
    for tables in measured.values():
        assert_filled(tables)


def test_a_table_is_printed_with_the_machine_it_was_measured_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "market", "--rounds", "1"])

    main()

    printed = capsys.readouterr().out
    assert printed.startswith("date ")
    assert "cores " in printed
    assert "load " in printed
    assert "uniform progress ms" in printed


def test_an_unknown_benchmark_is_named_with_those_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "speed"])

    with pytest.raises(SystemExit) as refused:
        main()

    assert refused.value.code == 2
    said = capsys.readouterr().err
    assert "there is no benchmark speed" in said
    assert all(name in said for name in (*STANDALONE, *BUILT))


@pytest.mark.real
def test_launching_keeps_to_its_calls(measure: Callable[..., dict[str, Any]]) -> None:
    (calls,) = measure("calls")["calls"]

    rows = [dict(zip(calls["columns"], row, strict=True)) for row in calls["rows"]]
    launches = {row["situation"]: row for row in rows if row["function"] == "launch_attempt"}
    by_provider, on_machine = {"first launch", "relaunch"}, {"machine is requested", "machine is ready"}
    again = {situation for situation in launches if situation.endswith("delivered again")}
    assert set(launches) - again == by_provider | on_machine
    for situation, launch in launches.items():
        calls_by_name = launch["calls in their order"].split(", ")
        # Items that are got one by one are what a warm function has kept, and machines.
        queries = [name for name in calls_by_name if name.startswith("Query")]
        # One is of the speeds that jobs of the definition have shown, one of budgets. On machines of our own those that
        # start are counted too, and the jobs that wait for them woken.
        most = 6 if situation in on_machine else 4
        assert all(int(name.partition(" x")[2] or 1) <= most for name in queries)
        assert ("RunTask" in calls_by_name) is (situation not in {"machine is requested", *again})
        # The last one, after RunTask, notes that the changes of the job were sent.
        assert launch["writes"] <= 4
    assert [launches[situation]["writes"] for situation in again] == [0] * 4
    requests = {row["situation"]: row["calls in their order"] for row in rows if row["function"] == "request_machine"}
    assert requests == {
        "EC2 Fleet is asked": "GetItem x2, TransactWriteItems x3, CreateFleet, PutItem",
        "EC2 Fleet is asked, delivered again": "GetItem",
        "machine is ended": "GetItem, TerminateInstances, TransactWriteItems",
        "machine is ended, delivered again": "GetItem",
    }


@pytest.mark.benchmark
def test_benchmarks_of_the_built_functions_fill_their_tables(measure: Callable[..., dict[str, Any]]) -> None:
    measured = measure(*BUILT)

    for tables in measured.values():
        assert_filled(tables)
    assert set(column(measured["functions"][0], "function")) >= {"submit_job", "launch_attempt", "observe_task"}
