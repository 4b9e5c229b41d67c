"""Unit tests lie where what they test lies: `tests/unit/a/b/test_module[_subject].py` tests `a/b/module.py`."""

from pathlib import Path

from fakes.repository import REPOSITORY

UNIT = REPOSITORY / "tests" / "unit"
SOURCES = {
    "cli": REPOSITORY / "cli" / "relaunch_cli",
    "local": REPOSITORY / "local" / "relaunch_local",
    "catalogue": REPOSITORY / "catalogue",
    "requirements": REPOSITORY / "requirements",
    "policy": REPOSITORY / "policy",
    "infrastructure": REPOSITORY / "infrastructure",
    "action": REPOSITORY / "action" / "relaunch_action",
}


def folder_of(folder: Path) -> Path:
    top, *rest = folder.relative_to(UNIT).parts or ("",)
    if top in SOURCES:
        return SOURCES[top].joinpath(*rest)
    return REPOSITORY.joinpath("layers", "relaunch", "relaunch", top, *rest)


def is_mirrored(test: Path) -> bool:
    modules = {module.stem for module in folder_of(test.parent).glob("*.py")}
    name = test.stem.removeprefix("test_")
    return any(name == module or name.startswith(f"{module}_") for module in modules)


def test_every_unit_test_is_named_after_a_module_of_its_folder():
    tests = sorted(UNIT.rglob("test_*.py"))

    assert len(tests) > 100
    assert [str(test.relative_to(UNIT)) for test in tests if not is_mirrored(test)] == []
