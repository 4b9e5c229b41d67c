"""What is installed is listed with its hashes, and each list agrees with what it was compiled to."""

import re
import runpy
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from architecture.conftest import REPOSITORY

COMPILE = runpy.run_path(str(REPOSITORY / "requirements" / "compile_lists.py"))
LISTS = COMPILE["LISTS"]
PYTHONS = ("3.11.0", "3.12.0", "3.13.0")
each_list = pytest.mark.parametrize("each", LISTS, ids=lambda each: each.compiled)


@dataclass(frozen=True)
class Compiled:
    """A requirement of a compiled file, its hashes, and who requires it."""

    requirement: Requirement
    hashes: tuple[str, ...]
    required_by: tuple[str, ...]


def read_compiled(file: str) -> Iterator[Compiled]:
    text = (REPOSITORY / file).read_text()
    for entry in re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]:
        continued, *comments = entry.replace("\\\n", "").splitlines()
        requirement, *hashes = re.split(r"\s+--hash=", continued.strip())
        required_by = (comment.strip().lstrip("#").strip().removeprefix("via").strip() for comment in comments)
        yield Compiled(Requirement(requirement), tuple(hashes), tuple(name for name in required_by if name))


def read_list(file: str) -> list[Requirement]:
    path, _, group = file.partition(":")
    text = (REPOSITORY / path).read_text()
    if group:
        project = tomllib.loads(text)
        of_the_project = project["project"]["dependencies"] if group == "dev" else []
        return [*map(Requirement, of_the_project + project["dependency-groups"][group])]
    return [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]


def names_of(file: str) -> set[str]:
    """What uv calls a list in what it compiles."""
    if ":" not in file:
        return {f"-r {file}"}
    return {f"relaunch ({name})" for name in (file, "pyproject.toml")}


def installed_by(python: str, requirements: Iterable[Requirement]) -> list[Requirement]:
    linux = {"python_full_version": python, "python_version": python[:4], "sys_platform": "linux", "extra": ""}
    platform = {"platform_python_implementation": "CPython", "implementation_name": "cpython"}
    return [each for each in requirements if each.marker is None or each.marker.evaluate({**linux, **platform})]


def versions(file: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in read_compiled(file):
        found.setdefault(canonicalize_name(each.requirement.name), set()).add(str(each.requirement.specifier))
    return found


@each_list
def test_every_requirement_is_one_version_with_hashes(each) -> None:
    compiled = list(read_compiled(each.compiled))

    assert compiled
    for found in compiled:
        assert re.fullmatch(r"==[^*,]+", str(found.requirement.specifier)), found.requirement
        assert found.hashes, found.requirement
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", digest) for digest in found.hashes), found.requirement


@each_list
@pytest.mark.parametrize("python", PYTHONS)
def test_a_list_and_what_it_was_compiled_to_agree(each, python: str) -> None:
    names = names_of(each.source)
    compiled = [found.requirement for found in read_compiled(each.compiled) if not names.isdisjoint(found.required_by)]

    listed = installed_by(python, read_list(each.source))
    wanted = {canonicalize_name(requirement.name): requirement for requirement in listed}
    direct = installed_by(python, compiled)
    assert {canonicalize_name(requirement.name) for requirement in direct} == set(wanted), "run `make requirements`"
    for requirement in direct:
        (version,) = (specifier.version for specifier in requirement.specifier)
        assert wanted[canonicalize_name(requirement.name)].specifier.contains(version), "run `make requirements`"


@each_list
def test_whatever_is_there_is_required_by_something_that_is_there(each) -> None:
    names = {canonicalize_name(found.requirement.name) for found in read_compiled(each.compiled)}
    roots = names_of(each.source)

    for found in read_compiled(each.compiled):
        by = {name for name in found.required_by if not name.startswith("-c ")}
        assert by, found.requirement
        assert {canonicalize_name(name) for name in by - roots} <= names, found.requirement


@each_list
def test_versions_that_have_to_be_the_same_are(each) -> None:
    if each.same_versions_as is None:
        return
    others = versions(each.same_versions_as)

    for name, found in versions(each.compiled).items():
        assert found == others.get(name, found), name


@each_list
@pytest.mark.parametrize("python", PYTHONS)
def test_markers_leave_one_version_to_every_python(each, python: str) -> None:
    compiled = [found.requirement for found in read_compiled(each.compiled)]
    installed = [canonicalize_name(requirement.name) for requirement in installed_by(python, compiled)]

    assert len(installed) == len(set(installed))
    assert {canonicalize_name(requirement.name) for requirement in read_list(each.source)} <= set(installed)


def test_no_file_names_an_index_or_an_address() -> None:
    for each in LISTS:
        for file in (each.source, each.compiled):
            if file.startswith("pyproject.toml:"):
                continue
            assert not re.search(r"://|--(extra-)?index|--find-links|@ ", (REPOSITORY / file).read_text()), file


def test_the_folder_has_what_each_group_is_compiled_to_and_no_list() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    there = {path.name for path in (REPOSITORY / "requirements").iterdir() if path.suffix not in {".py", ""}}

    assert "optional-dependencies" not in project["project"]
    assert there == {f"{group}.txt" for group in project["dependency-groups"]}


def test_the_build_tool_of_the_project_is_among_the_hashed_ones() -> None:
    build = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["build-system"]["requires"]

    for requirement in map(Requirement, build):
        assert versions("requirements/dev.txt")[requirement.name] == {str(requirement.specifier)}


def test_nothing_is_installed_without_hashes() -> None:
    files = [REPOSITORY / "Makefile", *(REPOSITORY / "requirements").glob("*.py")]
    for folder in ("layers", "functions", "local", "examples", "catalogue", "benchmarks"):
        files += [file for file in (REPOSITORY / folder).rglob("*") if is_text(file)]

    installing = {file for file in files if re.search(r"\bpip\"?,? \"?install\b|\(PIP\) install\b", file.read_text())}
    assert len(installing) == 4
    assert [str(file) for file in installing if "--require-hashes" not in file.read_text()] == []


def is_text(file: Path) -> bool:
    return file.is_file() and (file.suffix in {".py", ".sh"} or file.name in {"Makefile", "Dockerfile"})
