import gzip
import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "catalogue/generate.py"


def load_script() -> Any:
    spec = spec_from_file_location("generate_catalogue", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    path = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module


generate = load_script()


def described(**fields: Any) -> dict[str, Any]:
    return {
        "VCpuInfo": {"DefaultVCpus": 4},
        "MemoryInfo": {"SizeInMiB": 16_384},
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
        **fields,
    }


def gpu(**fields: Any) -> dict[str, Any]:
    card = {"Count": 1, "Manufacturer": "NVIDIA", "Name": "A10G", "MemoryInfo": {"SizeInMiB": 22_888}}
    return {"GpuInfo": {"Gpus": [card | fields]}}


NEURON = {
    "NeuronInfo": {
        "NeuronDevices": [
            {"Count": 1, "CoreInfo": {"Count": 4}, "MemoryInfo": {"SizeInMiB": 8_192}, "Name": "Inferentia"}
        ]
    }
}
INFERENCE = {"InferenceAcceleratorInfo": {"Accelerators": [{"Count": 1, "Manufacturer": "AWS", "Name": "Inferentia"}]}}


def test_the_bundled_catalogue_is_what_the_generator_makes(capsys: pytest.CaptureFixture[str]) -> None:
    status = generate.main(["--check"])

    assert status == 0, capsys.readouterr().out


def test_the_first_dump_that_has_a_type_wins_and_each_row_names_its_own() -> None:
    newest = ("moto 5.2.5", {"g5.xlarge": described(**gpu())})
    older = ("moto 5.1.10", {"g5.xlarge": described(**gpu(Count=9)), "p3.2xlarge": described(**gpu(Name="V100"))})

    rows = generate.build_catalogue([newest, older], {})

    assert [(row.name, row.gpu_count, row.source) for row in rows] == [
        ("g5.xlarge", 1, "moto 5.2.5"),
        ("p3.2xlarge", 1, "moto 5.1.10"),
    ]


def test_dumps_older_than_fractional_types_have_as_many_logical_gpus_as_gpus() -> None:
    (old,) = generate.build_catalogue([("moto 5.0.20", {"g3.8xlarge": described(**gpu(Count=2))})], {})

    assert (old.logical_gpu_count, old.gpu_partition_size) == (2, 1.0)


def test_a_fractional_type_keeps_its_share() -> None:
    fraction = described(**gpu(Count=0, LogicalGpuCount=1, GpuPartitionSize=0.25))

    (row,) = generate.build_catalogue([("moto 5.2.5", {"g6f.2xlarge": fraction})], {})

    assert (row.gpu_count, row.logical_gpu_count, row.gpu_partition_size) == (0, 1, 0.25)


def test_inferentia_is_counted_once() -> None:
    (row,) = generate.build_catalogue([("moto 5.2.5", {"inf1.xlarge": described(**NEURON, **INFERENCE)})], {})

    assert (row.neuron_devices, row.neuron_cores_per_device, row.gpu_count) == (1, 4, 0)


def test_types_without_an_accelerator_are_left_out() -> None:
    assert generate.build_catalogue([("moto 5.2.5", {"c5.large": described()})], {}) == []


@pytest.mark.parametrize(
    ("types", "message"),
    [
        pytest.param({"inf1.xlarge": described(**INFERENCE)}, "no NeuronInfo", id="Inferentia without its cores"),
        pytest.param(
            {"x1.large": described(GpuInfo={"Gpus": [{}, {}]})}, "x1.large has 2 kinds", id="two kinds of accelerator"
        ),
    ],
)
def test_what_the_form_cannot_hold_is_refused(types: dict[str, Any], message: str) -> None:
    with pytest.raises(generate.CatalogueError, match=message):
        generate.build_catalogue([("moto 5.2.5", types)], {})


def test_the_overlay_corrects_a_row_renames_a_model_and_says_why() -> None:
    overlay = {
        "models": {"A10G": {"name": "A10", "reason": "so called"}},
        "rows": {"g5.xlarge": {"set": {"gpu_memory_mib": 24_576}, "reason": "measured"}},
    }

    (row,) = generate.build_catalogue([("moto 5.2.5", {"g5.xlarge": described(**gpu())})], overlay)

    assert (row.accelerator_model, row.gpu_memory_mib) == ("A10", 24_576)
    assert row.source == "moto 5.2.5; overlay, accelerator_model: so called; overlay, gpu_memory_mib: measured"


def test_the_overlay_adds_a_whole_type_that_no_dump_has() -> None:
    whole = {
        "vcpus": 144,
        "memory_mib": 983_040,
        "architecture": "arm64",
        "accelerator_manufacturer": "NVIDIA",
        "accelerator_model": "GB200",
    }

    (row,) = generate.build_catalogue([], {"rows": {"p6e.36xlarge": {"set": whole, "reason": "not described yet"}}})

    assert (row.name, row.source) == ("p6e.36xlarge", "overlay: not described yet")


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        ({"rows": {"g5.xlarge": {"set": {"vcpus": 4}, "reason": "r"}}}, "remove the entry"),
        ({"rows": {"g5.xlarge": {"set": {"vcpu": 5}, "reason": "r"}}}, "vcpu"),
        ({"rows": {"g9.xlarge": {"set": {"vcpus": 4}, "reason": "r"}}}, "g9.xlarge"),
        ({"models": {"K80": {"name": "K-80", "reason": "r"}}}, "no type has the model K80"),
    ],
    ids=["changes nothing", "an unknown column", "half a row", "an unknown model"],
)
def test_an_overlay_that_does_not_fit_is_refused(overlay: dict[str, Any], message: str) -> None:
    with pytest.raises(generate.CatalogueError, match=message):
        generate.build_catalogue([("moto 5.2.5", {"g5.xlarge": described(**gpu())})], overlay)


def test_check_shows_what_differs_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "types.json"
    generate.main(["--output", str(output)])
    wrong = output.read_text().replace('["g5.xlarge", 4,', '["g5.xlarge", 5,')
    output.write_text(wrong)
    capsys.readouterr()

    status = generate.main(["--check", "--output", str(output)])

    assert status == 1
    assert '-["g5.xlarge", 5,' in capsys.readouterr().out
    assert output.read_text() == wrong


def test_an_older_dump_is_read_from_a_file_compressed_or_not(tmp_path: Path) -> None:
    types = [{"InstanceType": "p3.2xlarge", **described(**gpu(Name="V100"))}]
    packed, plain = tmp_path / "types.json.gz", tmp_path / "types.json"
    packed.write_bytes(gzip.compress(json.dumps(types).encode()))
    plain.write_text(json.dumps({"p3.2xlarge": types[0]}))

    for path in (packed, plain):
        output = tmp_path / "out.json"
        assert generate.main(["--dump", f"5.1.10={path}", "--output", str(output)]) == 0
        assert '["p3.2xlarge", 4, 16384' in output.read_text()
        assert "moto 5.1.10" in output.read_text()


def test_a_missing_dump_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = generate.main(["--dump", f"5.1.10={tmp_path / 'none.gz'}", "--output", str(tmp_path / "out.json")])

    assert status == 2
    assert "none.gz" in capsys.readouterr().err
