"""The command alone, as `pipx install .` and `uv tool install .` install it."""

import os
import re
import subprocess
import tomllib
from email import message_from_string
from zipfile import ZipFile

import pytest

from fakes.installed_command import InstalledCommand, install
from fakes.repository import REPOSITORY

LARGEST_MEGABYTES = 80
VERSION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> InstalledCommand:
    return install(tmp_path_factory.mktemp("command"))


def run(installed: InstalledCommand, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command elsewhere than in a clone, and with nothing of this environment on the path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [installed.program, *arguments],
        cwd=installed.folder,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def members(installed: InstalledCommand) -> list[str]:
    with ZipFile(installed.wheel) as archive:
        return archive.namelist()


def test_the_wheel_has_the_command_and_what_it_calls_and_nothing_else(installed: InstalledCommand) -> None:
    packages = {name.split("/")[0] for name in members(installed)}
    modules = {name for name in members(installed) if name.endswith(".py")}
    sources = {
        str(file.relative_to(root))
        for root in (REPOSITORY / "layers" / "relaunch", REPOSITORY / "cli")
        for file in root.rglob("*.py")
    }

    assert packages == {"relaunch", "relaunch_cli", f"relaunch-{VERSION}.dist-info"}
    assert modules == sources


def test_the_wheel_requires_exact_versions_and_nothing_of_the_functions_or_tests(installed: InstalledCommand) -> None:
    with ZipFile(installed.wheel) as archive:
        described = message_from_string(archive.read(f"relaunch-{VERSION}.dist-info/METADATA").decode())
    required = [line for line in described.get_all("Requires-Dist", ()) if "extra ==" not in line]
    names = {re.split("[=<>;]", line)[0] for line in required}

    # Lambda Powertools are of the functions, which have them in a layer.
    assert names == {"boto3", "google-re2", "httpx", "jinja2", "pydantic", "pyyaml", "rich", "typer"}
    assert all("==" in line for line in required)


def test_it_takes_less_than_eighty_megabytes(installed: InstalledCommand) -> None:
    # With the bytecode that pip compiles, as far as the tests have made it; -L counts what is linked.
    counted = subprocess.run(
        ["du", "-skL", installed.packages], capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]}
    )

    megabytes = int(counted.stdout.split()[0]) / 1024
    assert 40 < megabytes < LARGEST_MEGABYTES


def test_every_module_of_the_command_imports_with_what_is_required(installed: InstalledCommand) -> None:
    program = (
        "import importlib, pkgutil, relaunch_cli, relaunch.bootstrap\n"
        "for each in pkgutil.walk_packages(relaunch_cli.__path__, 'relaunch_cli.'):\n"
        "    importlib.import_module(each.name)\n"
    )
    done = subprocess.run(
        [installed.folder / "bin" / "python", "-I", "-c", program], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


def test_it_tells_its_version(installed: InstalledCommand) -> None:
    assert run(installed, "--version").stdout == f"relaunch {VERSION}\n"


def test_it_plans_offline(installed: InstalledCommand) -> None:
    done = run(installed, "plan", "--gpu", "1")

    assert done.returncode == 0, done.stderr
    assert "g4dn.xlarge" in done.stdout
    assert "planned offline" in done.stderr


def test_it_deploys_a_clone_that_is_named_and_says_so(installed: InstalledCommand) -> None:
    alone = run(installed, "deploy", "--dry-run")
    named = run(installed, "deploy", "--dry-run", "--source", str(REPOSITORY), AWS_REGION="us-east-1")

    assert "is no clone of Relaunch" in alone.stderr
    assert "--source" in alone.stderr
    # The clone is taken: what is missing now are credentials, which no test has. tests/real has an account.
    assert "no AWS credentials" in named.stderr, named.stderr
