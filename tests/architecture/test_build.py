"""The build's own tables agree with the template and the code."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.loaders import Loader
from botocore.model import OperationModel, ServiceModel
from botocore.regions import EndpointResolver

from architecture.conftest import REPOSITORY, Template

MAKEFILES = ("functions/Makefile", "layers/relaunch/Makefile", "layers/dependencies/Makefile")
LAYER = REPOSITORY / "layers" / "dependencies"


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


def test_the_layer_keeps_the_operations_that_are_called_and_no_others() -> None:
    """An operation counts as called where its name is an attribute or a text: that of a paginator is one."""
    kept = json.loads((LAYER / "operations.json").read_text())
    session = botocore.session.get_session()
    used = names_used()

    assert kept.keys() == clients_made()
    for service, operations in kept.items():
        known = session.get_service_model(service).operation_names
        assert operations == sorted(each for each in known if xform_name(each) in used), service


def test_a_client_of_the_layer_serializes_and_parses_as_one_of_the_whole_model(tmp_path: Path) -> None:
    data = Path(botocore.__file__).parent / "data"
    kept = json.loads((LAYER / "operations.json").read_text())
    for service in (*kept, "batch"):
        shutil.copytree(data / service, tmp_path / service)
    shutil.copy(data / "endpoints.json", tmp_path)
    subprocess.run([sys.executable, LAYER / "keep_services.py", tmp_path, LAYER / "operations.json"], check=True)
    loader = Loader(extra_search_paths=[str(tmp_path)], include_default_search_paths=False)

    assert {each.name for each in tmp_path.iterdir() if each.is_dir()} == set(kept)
    resolvers = [EndpointResolver(each.load_data("endpoints")) for each in (Loader(), loader)]
    for service, operations in kept.items():
        whole, ours = (
            ServiceModel(each.load_service_model(service, "service-2"), service) for each in (Loader(), loader)
        )
        assert set(operations) <= set(ours.operation_names)
        # S3's client reads the text of its own parameters.
        assert ours.client_context_parameters == whole.client_context_parameters
        assert ours.metadata == whole.metadata
        for name in ours.operation_names:
            assert described(ours.operation_model(name)) == described(whole.operation_model(name)), name
        assert [vars_of(each) for each in ours.error_shapes] == [vars_of(each) for each in whole.error_shapes]
        for region in ("us-east-1", "eu-central-1", "cn-north-1", "us-gov-west-1", "aws-global"):
            places = [each.construct_endpoint(whole.endpoint_prefix, region) for each in resolvers]
            assert places[0] == places[1]


def test_an_operation_that_is_not_in_the_model_ends_the_build(tmp_path: Path) -> None:
    shutil.copytree(Path(botocore.__file__).parent / "data" / "sts", tmp_path / "sts")
    wanted = tmp_path / "operations.json"
    for content, problem in (({"sts": ["Guess"]}, "STS has no operation Guess"), ({"s4": []}, "no model of: s4")):
        wanted.write_text(json.dumps(content))
        ended = subprocess.run(
            [sys.executable, LAYER / "keep_services.py", tmp_path, wanted], capture_output=True, text=True, check=False
        )
        assert ended.returncode == 1
        assert problem in ended.stderr


def names_used() -> set[str]:
    """The attributes and texts of our code."""
    sources = (REPOSITORY / "layers" / "relaunch" / "relaunch").rglob("*.py")
    return {name for source in sources for name in re.findall(r"""[."'](\w+)\b""", source.read_text())}


def described(operation: OperationModel) -> object:
    """What a client sends and reads of an operation: all of its model but the texts."""
    shapes = (operation.input_shape, operation.output_shape, *operation.error_shapes)
    rest = {
        name: value
        for name, value in vars(operation)["_operation_model"].items()
        if name not in ("documentation", "errors")
    }
    return rest, [vars_of(each) for each in shapes]


def vars_of(shape: Any, around: tuple[str, ...] = ()) -> object:
    """A shape with all that it consists of, as deep as it does not contain itself."""
    if shape is None or shape.name in around:
        return shape and shape.name
    inner = (*around, shape.name)
    parts = dict(getattr(shape, "members", {}))
    parts |= {name: getattr(shape, name) for name in ("member", "key", "value") if hasattr(shape, name)}
    own = (shape.name, shape.type_name, shape.serialization, shape.metadata)
    return own, {name: vars_of(each, inner) for name, each in parts.items()}
