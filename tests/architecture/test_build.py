"""The build's own tables agree with the template and the code."""

import ast
import re
import tomllib

from architecture.conftest import REPOSITORY, Template

MAKEFILES = ("functions/Makefile", "layers/relaunch/Makefile", "layers/dependencies/Makefile")


def pins(requirements: list[str]) -> dict[str, str]:
    """Versions by normalised name."""
    pinned = (line.split()[0].split("==") for line in requirements if re.match(r"[A-Za-z0-9_-]+==", line))
    return {name.lower().replace("_", "-"): version for name, version in pinned}


def clients_made() -> set[str]:
    """The services that our code makes boto3 clients of, by name."""
    sources = (REPOSITORY / "layers" / "relaunch" / "relaunch").rglob("*.py")
    calls = (
        node for source in sources for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Call)
    )
    return {
        argument.value
        for call in calls
        if isinstance(call.func, ast.Attribute | ast.Name)
        and (call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id) in {"client", "lazy"}
        for argument in call.args[:1]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def test_a_plain_sam_build_compiles_for_the_default_runtime(template: Template) -> None:
    for makefile in MAKEFILES:
        (runtime,) = re.findall(r"^RUNTIME \?= (\S+)$", (REPOSITORY / makefile).read_text(), re.MULTILINE)
        assert runtime == template.parameters["Runtime"]["Default"], makefile


def test_every_function_and_layer_has_a_build_target(template: Template) -> None:
    targets = {
        target
        for makefile in MAKEFILES
        for target in re.findall(r"^build-(\w+):", (REPOSITORY / makefile).read_text(), re.MULTILINE)
    }

    assert targets == set(template.functions) | {"DependenciesLayer", "RelaunchLayer"}


def test_the_layer_has_the_versions_that_the_tests_ran_with() -> None:
    project = pins(tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"])
    layer = pins((REPOSITORY / "layers" / "dependencies" / "requirements.txt").read_text().splitlines())

    assert {name: project[name] for name in project if name in layer} == {
        name: layer[name] for name in project if name in layer
    }
    assert {"boto3", "aws-lambda-powertools", "pydantic"} <= set(layer)


def test_each_system_has_the_release_of_re2_that_its_pythons_are_tested_with() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"]
    tested = {line.partition("; ")[2]: line.partition("; ")[0] for line in project if line.startswith("google-re2")}
    layers = {
        system: (REPOSITORY / "layers" / "dependencies" / f"requirements-amazon-linux-{system}.txt").read_text()
        for system in ("2", "2023")
    }

    assert pins([tested["python_version < '3.12'"]]) == pins(layers["2"].splitlines())
    assert pins([tested["python_version >= '3.12'"]]) == pins(layers["2023"].splitlines())


def test_the_layer_keeps_the_models_of_the_services_that_are_called_and_no_others() -> None:
    makefile = (REPOSITORY / "layers" / "dependencies" / "Makefile").read_text()
    (kept,) = re.findall(r"^SERVICES = (.*)$", makefile, re.MULTILINE)

    assert set(kept.split()) == clients_made()
