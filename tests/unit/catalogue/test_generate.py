import gzip
import json
import shutil
import sys
import zipfile
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from fakes.repository import REPOSITORY

SCRIPT = REPOSITORY / "catalogue/generate.py"


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
        "NetworkInfo": {"EfaSupported": False, "NetworkPerformance": "10 Gigabit"},
        "BareMetal": False,
        "SupportedUsageClasses": ["spot", "on-demand"],
        **fields,
    }


def gpu(**fields: Any) -> dict[str, Any]:
    card = {"Count": 1, "Manufacturer": "NVIDIA", "Name": "A10G", "MemoryInfo": {"SizeInMiB": 22_888}}
    return {"GpuInfo": {"Gpus": [card | fields]}}


DEVICE = {"Count": 1, "CoreInfo": {"Count": 4, "Version": 1}, "MemoryInfo": {"SizeInMiB": 8_192}, "Name": "Inferentia"}
NEURON = {"NeuronInfo": {"NeuronDevices": [DEVICE]}}
INFERENCE = {"InferenceAcceleratorInfo": {"Accelerators": [{"Count": 1, "Manufacturer": "AWS", "Name": "Inferentia"}]}}


def test_the_bundled_catalogue_is_what_the_generator_makes(capsys: pytest.CaptureFixture[str]) -> None:
    # Compared whole where `make catalogue` was run; otherwise the rows of older releases are kept.
    status = generate.main(["--check"])

    assert status == 0, capsys.readouterr().out


def test_without_older_releases_their_rows_are_kept_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = generate.main(["--check", "--wheels", str(tmp_path)])

    assert status == 0
    assert "18 rows of moto 5.2.0, moto 5.1.10, moto 5.1.0, moto 5.0.20, moto 4.0.0" in capsys.readouterr().out


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


def correction(reason: str = "r", **fields: Any) -> dict[str, Any]:
    return {"corrections": [{"reason": reason, **fields}]}


def test_the_overlay_corrects_a_row_renames_a_model_and_says_why() -> None:
    overlay = {
        "corrections": [
            {"models": ["A10G"], "set": {"accelerator_model": "A10"}, "reason": "so called"},
            {"models": ["A10"], "set": {"compute_capability": [8, 6]}, "reason": "looked up"},
            {"types": ["g5.xlarge"], "set": {"gpu_memory_mib": 24_576}, "reason": "measured"},
        ]
    }

    (row,) = generate.build_catalogue([("moto 5.2.5", {"g5.xlarge": described(**gpu())})], overlay)

    assert (row.accelerator_model, row.compute_capability, row.gpu_memory_mib) == ("A10", (8, 6), 24_576)
    assert row.source == (
        "moto 5.2.5; overlay, accelerator_model: so called; overlay, compute_capability: looked up; "
        "overlay, gpu_memory_mib: measured"
    )


def test_the_overlay_adds_a_whole_type_that_no_dump_has() -> None:
    whole = {
        "vcpus": 144,
        "memory_mib": 983_040,
        "architecture": "arm64",
        "accelerator_manufacturer": "NVIDIA",
        "accelerator_model": "GB200",
    }

    (row,) = generate.build_catalogue([], correction("not described yet", types=["p6e.36xlarge"], set=whole))

    assert (row.name, row.source) == ("p6e.36xlarge", "overlay: not described yet")


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        (correction(types=["g5.xlarge"], set={"vcpus": 4}), "remove the entry"),
        (correction(types=["g5.xlarge"], set={"vcpu": 5}), "vcpu"),
        (correction(types=["g9.xlarge"], set={"vcpus": 4}), "g9.xlarge"),
        (correction(models=["K80"], set={"accelerator_model": "K-80"}), "no type has the model K80"),
    ],
    ids=["changes nothing", "an unknown column", "half a row", "an unknown model"],
)
def test_an_overlay_that_does_not_fit_is_refused(overlay: dict[str, Any], message: str) -> None:
    with pytest.raises(generate.CatalogueError, match=message):
        generate.build_catalogue([("moto 5.2.5", {"g5.xlarge": described(**gpu())})], overlay)


def test_zones_are_written_behind_their_region_local_zones_too() -> None:
    offered = {
        "us-west-2": [
            {"InstanceType": "g5.xlarge", "Location": "us-west-2b"},
            {"InstanceType": "g5.xlarge", "Location": "us-west-2-lax-1a"},
            {"InstanceType": "c5.large", "Location": "us-west-2a"},
        ],
        "ca-west-1": [{"InstanceType": "c5.large", "Location": "ca-west-1a"}],
    }

    text = json.loads(generate.render_zones(offered, ["g5.xlarge", "p5.48xlarge"], "moto 5.2.5", "2026-10-27"))

    assert (text["source"], text["date"]) == ("moto 5.2.5", "2026-10-27")
    assert text["regions"] == {"ca-west-1": {}, "us-west-2": {"g5.xlarge": "-lax-1a b"}}


def wheel_folder(folder: Path, *missing: str) -> Path:
    """Make wheels of every pinned release but the newest: the first of them knows p3.2xlarge, packed as moto packs."""
    releases = [each["version"] for each in json.loads(generate.RELEASES.read_text())][1:]
    for label in set(releases) - set(missing):
        types = {"p3.2xlarge": described(**gpu(Name="V100"))} if label == releases[0] else {}
        with zipfile.ZipFile(folder / f"moto-{label}.whl", "w") as wheel:
            if label == releases[0]:
                packed = gzip.compress(json.dumps(types).encode())
                wheel.writestr("moto/ec2/resources/instance_types.json.gz", packed)
            else:
                wheel.writestr("moto/ec2/resources/instance_types.json", json.dumps(types))
    return folder


def write_overlay(folder: Path) -> Path:
    path = folder / "overlay.json"
    path.write_text('{"corrections": []}')
    return path


def test_older_releases_are_read_from_their_wheels(tmp_path: Path) -> None:
    options = ["--wheels", str(wheel_folder(tmp_path)), "--overlay", str(write_overlay(tmp_path))]

    assert generate.main([*options, "--output", str(tmp_path)]) == 0

    assert '["p3.2xlarge", 4, 16384' in (tmp_path / "instance_types.json").read_text()
    assert '"moto 5.2.0"' in (tmp_path / "instance_types.json").read_text()


def test_a_release_that_was_not_fetched_is_named_and_nothing_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = generate.main(["--wheels", str(wheel_folder(tmp_path, "5.1.0")), "--output", str(tmp_path)])

    assert status == 2
    assert "moto 5.1.0: neither installed nor downloaded" in capsys.readouterr().err
    assert not (tmp_path / "instance_types.json").exists()


def test_check_shows_what_differs_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (generate.TYPES_FILE, generate.ZONES_FILE):
        shutil.copy(generate.DATA / name, tmp_path)
    output = tmp_path / generate.TYPES_FILE
    wrong = output.read_text().replace('["g5.xlarge", 4,', '["g5.xlarge", 5,')
    output.write_text(wrong)

    status = generate.main(["--check", "--output", str(tmp_path)])

    assert status == 1
    assert '-["g5.xlarge", 5,' in capsys.readouterr().out
    assert output.read_text() == wrong


def test_the_newest_pinned_release_is_the_installed_one() -> None:
    newest, *older = json.loads(generate.RELEASES.read_text())

    assert newest["version"] == version("moto"), "pin the new release in catalogue/releases.json; make catalogue"
    assert len({each["sha256"] for each in (newest, *older)}) == 1 + len(older)
