"""Each built function runs with only its own layers, and is compiled for its Runtime."""

import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest
import yaml

from fakes.repository import FUNCTIONS
from relaunch_local.stack.build import BUILD, read_record

# Unzipped, function and layers together (Lambda quotas: 250 MB).
LARGEST_UNZIPPED_BYTES = 250 * 2**20
LAYERS = ("RelaunchLayer", "DependenciesLayer")


def layers_of(function: str) -> list[str]:
    template = yaml.safe_load((BUILD / "template.yaml").read_text())
    layers = template["Resources"][function]["Properties"]["Layers"]
    # Those of a stack without a cluster of Kubernetes.
    return [layer["Ref"] for layer in (layers["Fn::If"][2] if "Fn::If" in layers else layers)]


@pytest.mark.usefixtures("built")
class TestPackages:
    @pytest.mark.parametrize(("function", "package"), FUNCTIONS.items())
    def test_a_handler_imports_with_its_layers_alone(self, function: str, package: str) -> None:
        path = [str(BUILD / function), *(str(BUILD / layer / "python") for layer in layers_of(function))]
        program = f"import sys; sys.path[:0] = {path!r}; import {package}.handler as it; assert callable(it.handle)"

        # -I -S: neither our environment nor any site-packages.
        result = subprocess.run(
            [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False, env={}
        )

        assert result.returncode == 0, result.stderr

    @pytest.mark.parametrize("artifact", [*FUNCTIONS, *LAYERS])
    def test_every_module_is_shipped_compiled_for_the_runtime(self, artifact: str, built: str) -> None:
        record = read_record()
        sources = list((BUILD / artifact).rglob("*.py"))

        assert record is not None
        assert record.runtime == built
        assert sources
        assert [str(source) for source in sources if not Path(cache_from_source(str(source))).is_file()] == []

    def test_bytecode_does_not_look_at_the_date_of_its_source(self) -> None:
        # SAM gives every file the date 1980-01-01; bytes 4 to 8 hold 1 for `unchecked-hash` (PEP 552).
        for compiled in (BUILD / "RelaunchLayer").rglob("*.pyc"):
            assert int.from_bytes(compiled.read_bytes()[4:8], "little") == 1, compiled

    def test_the_layers_fit_into_a_function(self) -> None:
        files = [file for layer in LAYERS for file in (BUILD / layer).rglob("*") if file.is_file()]

        assert sum(file.stat().st_size for file in files) < LARGEST_UNZIPPED_BYTES / 2

    def test_nothing_of_this_machine_is_in_the_bytecode(self) -> None:
        for compiled in (BUILD / "RelaunchLayer").rglob("*.pyc"):
            assert str(BUILD).encode() not in compiled.read_bytes(), compiled
