"""The bill that records of jobs are compared with is EC2's: it knows nothing of the application."""

import ast
import sys
from pathlib import Path

from relaunch_local.ecs.rules import bill


def test_the_bill_imports_the_standard_library_alone() -> None:
    tree = ast.parse(Path(bill.__file__).read_text(encoding="utf-8"))
    imported = [each.names[0].name for each in ast.walk(tree) if isinstance(each, ast.Import)]
    imported += [each.module or "." for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    assert imported
    assert [name for name in imported if name.partition(".")[0] not in sys.stdlib_module_names] == []
