"""Ports are imported when they are used: the table that finds them has what type checkers see."""

import ast
import subprocess
import sys

import pytest

from fakes.repository import REPOSITORY
from relaunch import ports

SOURCE = (REPOSITORY / "layers" / "relaunch" / "relaunch" / "ports" / "__init__.py").read_text(encoding="utf-8")


def test_the_table_of_ports_has_what_type_checkers_see():
    seen = {
        alias.asname: str(node.module).removeprefix("relaunch.ports.")
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("relaunch.ports.")
        for alias in node.names
    }

    assert seen == ports._PLACES
    assert [name for name in seen if not hasattr(ports, name)] == []
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = ports.Nothing


def test_an_error_of_ports_is_imported_alone():
    program = "import sys; from relaunch.ports import TransientError; print(*sys.modules)"

    shown = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )

    assert {name for name in shown.stdout.split() if name.startswith("relaunch.")} == {
        "relaunch.ports",
        "relaunch.ports.errors",
    }
