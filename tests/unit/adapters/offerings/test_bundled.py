import csv
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes.repository import REPOSITORY
from relaunch.adapters.offerings.bundled import (
    UnknownRegionError,
    bundled_snapshot,
    check_region,
    known_regions,
    load_catalogue,
    load_on_demand_prices,
)
from relaunch.core.offerings.instance_types import InstanceType, known_models
from relaunch.core.offerings.snapshot import SnapshotPart
from relaunch.core.selection.instance_type_filters import check_gpu_memory
from relaunch.core.selection.requirements import Requirements

# GiB per card as its maker and EC2's product pages say it, by model and the MiB that DescribeInstanceTypes reports.
MARKETED_GIB = {
    ("A10G", 22_888): 24,
    ("A100", 40_960): 40,
    ("A100", 81_920): 80,
    ("B200", 183_359): 192,
    ("B200", 189_440): 192,
    ("B300", 275_040): 288,
    ("H100", 81_920): 80,
    ("H200", 144_384): 141,
    ("Gaudi HL-205", 32_768): 32,
    ("K520", 4_096): 4,
    ("K80", 12_288): 12,
    ("L4", 2_861): 3,
    ("L4", 5_722): 6,
    ("L4", 11_444): 12,
    ("L4", 22_888): 24,
    ("L40S", 45_776): 48,
    ("M60", 8_192): 8,
    ("RTX PRO 4500", 32_768): 32,
    ("RTX PRO 6000", 98_304): 96,
    ("T4", 16_384): 16,
    ("T4g", 16_384): 16,
    ("Radeon Pro V520", 8_192): 8,
    ("V100", 16_384): 16,
    ("V100", 32_768): 32,
}
GPU_TYPES = [row for row in load_catalogue().values() if row.logical_gpu_count]
REFERENCE = Path(os.environ.get("RELAUNCH_REFERENCE_DATA", REPOSITORY.parent / "shared/data"))


def accepts(row: InstanceType, gib: int) -> bool:
    return check_gpu_memory(Requirements(is_gpu=True, gpu_memory_mib=gib * 1024), row) is None


@pytest.mark.parametrize("row", GPU_TYPES, ids=lambda row: row.name)
def test_a_request_for_the_marketed_memory_accepts_the_card_and_no_smaller_one(row: InstanceType) -> None:
    marketed = MARKETED_GIB[row.accelerator_model, row.gpu_memory_mib]

    larger = {gib for gib in MARKETED_GIB.values() if gib > marketed}

    assert accepts(row, marketed)
    assert not any(accepts(row, gib) for gib in larger)


def test_every_row_says_where_it_comes_from() -> None:
    assert all(row.source.startswith(("moto ", "overlay: ")) for row in load_catalogue().values())
    assert all(name == row.name == name.lower() for name, row in load_catalogue().items())


def test_types_that_no_release_describes_are_marked_by_what_is_known_of_them() -> None:
    added = {name: row for name, row in load_catalogue().items() if row.source.startswith("overlay: ")}

    facts = {name: (row.vcpus, row.accelerator_count, row.usage_classes) for name, row in added.items()}
    assert facts == {
        "p6e-gb200.36xlarge": (144, 4, ("capacity-block",)),
        "trn2u.48xlarge": (192, 16, ("capacity-block",)),
        "trn3.48xlarge": (0, 16, ()),
        "trn3pd98.3xlarge": (0, 1, ()),
    }
    assert [name for name, row in load_catalogue().items() if not row.is_listed] == [
        "trn3.48xlarge",
        "trn3pd98.3xlarge",
    ]
    assert "EC2 lists no such type yet" in added["trn3.48xlarge"].source


def test_fractional_types_have_no_whole_gpu() -> None:
    fractions = {row.name: row.gpu_partition_size for row in load_catalogue().values() if row.is_fractional}

    assert fractions == {
        "g6f.large": 0.125,
        "g6f.xlarge": 0.125,
        "g6f.2xlarge": 0.25,
        "g6f.4xlarge": 0.5,
        "gr6f.4xlarge": 0.5,
    }
    assert all(load_catalogue()[name].gpu_count == 0 for name in fractions)


def test_neuron_types_have_devices_cores_and_the_corrected_memory() -> None:
    facts = {
        name: (row.neuron_devices, row.neuron_cores, row.accelerator_memory_mib)
        for name, row in load_catalogue().items()
        if name in {"inf1.xlarge", "inf2.xlarge", "trn1.32xlarge", "trn2.48xlarge"}
    }

    assert facts == {
        "inf1.xlarge": (1, 4, 8_192),
        "inf2.xlarge": (1, 2, 32_768),
        "trn1.32xlarge": (16, 32, 32_768),
        "trn2.48xlarge": (16, 128, 98_304),
    }
    assert "96 GiB" in load_catalogue()["trn2.48xlarge"].source


def test_other_makers_are_known_but_not_supported() -> None:
    qualcomm = load_catalogue()["dl2q.24xlarge"]

    assert (qualcomm.accelerator_manufacturer, qualcomm.is_supported) == ("Qualcomm", False)
    assert "AI100" not in known_models(load_catalogue())
    assert "A10G" in known_models(load_catalogue())


def test_on_demand_prices_say_their_day_and_region() -> None:
    prices = load_on_demand_prices()

    assert (prices.region, prices.at) == ("us-east-1", datetime(2026, 7, 20, tzinfo=UTC))
    assert (prices.usd_per_hour["g5.xlarge"], prices.usd_per_hour["p5.48xlarge"]) == (1.006, 55.04)
    assert all(price > 0 for price in prices.usd_per_hour.values())


def test_nearly_every_type_that_jobs_can_use_has_a_price() -> None:
    supported = {row.name for row in load_catalogue().values() if row.is_supported}

    # These are not sold on demand in the region of the table.
    unpriced = {
        "p5e.48xlarge",
        "p6e-gb200.36xlarge",
        "trn2.3xlarge",
        "trn2.48xlarge",
        "trn2u.48xlarge",
        "trn3.48xlarge",
        "trn3pd98.3xlarge",
    }
    assert supported - load_on_demand_prices().usd_per_hour.keys() == unpriced


def reference_rows(name: str) -> Iterator[dict[str, str]]:
    path = REFERENCE / name
    if not path.exists():
        pytest.skip(f"no {name} to compare with; RELAUNCH_REFERENCE_DATA names its folder")
    with path.open(newline="") as file:
        yield from csv.DictReader(file)


def test_the_catalogue_differs_from_reference_data_only_where_the_overlay_says_so() -> None:
    compared = 0
    for expected in reference_rows("accelerators.csv"):
        row = load_catalogue()[expected["instance_type"]]
        compared += 1
        for field, value in comparable(expected).items():
            assert getattr(row, field) == value or f"overlay, {field}:" in row.source, (row.name, field)
    assert compared == sum(row.source.startswith("moto ") for row in load_catalogue().values()) == 97


def comparable(expected: dict[str, str]) -> dict[str, object]:
    facts: dict[str, object] = {
        "vcpus": int(expected["vcpus"]),
        "efa_interfaces": int(expected["max_efa"] or 0),
        "nvme_gb": int(expected["nvme_gb"] or 0),
        "is_bare_metal": expected["bare_metal"] == "True",
        "usage_classes": tuple(sorted(expected["usage_classes"].split("|"))),
        "network": expected["network"],
        "memory_mib": int(expected["memory_mib"]),
        "architecture": expected["arch"],
    }
    if expected["neuron_count"]:
        return facts | {
            "accelerator_model": expected["neuron_name"],
            "neuron_devices": int(expected["neuron_count"]),
            "neuron_cores_per_device": int(expected["cores_per_device"]),
            "neuron_core_version": int(float(expected["core_version"])),
            "neuron_memory_mib": int(expected["neuron_mem_mib_each"]),
        }
    if expected["gpu_name"]:
        return facts | {
            "accelerator_manufacturer": expected["gpu_manufacturer"],
            "accelerator_model": expected["gpu_name"],
            "gpu_count": int(expected["gpu_count"]),
            "gpu_memory_mib": int(expected["gpu_mem_mib_each"]),
            "gpu_partition_size": float(expected["gpu_partition_size"] or 1),
            "logical_gpu_count": int(expected["logical_gpu_count"] or expected["gpu_count"]),
        }
    return facts


def test_bundled_prices_are_those_of_the_reference_data() -> None:
    day = load_on_demand_prices().at.date().isoformat()
    rows = [row for row in reference_rows("prices.csv") if row["date"] == day and row["region"] == "us-east-1"]

    assert load_on_demand_prices().usd_per_hour == {row["instance_type"]: float(row["on_demand_usd_h"]) for row in rows}


def test_compute_capability_is_known_of_every_nvidia_gpu_and_of_nothing_else() -> None:
    known = {row.accelerator_model: row.compute_capability for row in load_catalogue().values()}

    unknown = {"AI100", "Gaudi HL-205", "Inferentia", "Inferentia2", "Radeon Pro V520"}
    unknown |= {"Trainium", "Trainium2", "Trainium3"}
    assert {model for model, capability in known.items() if capability is None} == unknown
    assert (known["K80"], known["V100"], known["L40S"], known["B300"]) == ((3, 7), (7, 0), (8, 9), (10, 3))


def test_nvlink_is_where_several_gpus_of_the_p_family_are() -> None:
    linked = {row.name for row in load_catalogue().values() if row.has_nvlink}

    several = {
        row.name
        for row in load_catalogue().values()
        if row.name.startswith("p") and not row.name.startswith("p2.") and row.gpu_count > 1
    }
    assert linked == several


def test_capacity_blocks_efa_and_bare_metal_are_told_apart() -> None:
    types = load_catalogue()

    assert types["p5.48xlarge"].usage_classes == ("capacity-block", "on-demand", "spot")
    assert (types["p5.48xlarge"].efa_interfaces, types["g5.xlarge"].efa_interfaces) == (32, 0)
    assert {row.name for row in types.values() if row.is_bare_metal} == {"g4dn.metal", "g5g.metal"}


def test_the_zones_of_a_region_are_bundled_with_its_prices() -> None:
    oregon = bundled_snapshot("us-west-2")

    assert oregon.zones["trn1.2xlarge"] == ("us-west-2b", "us-west-2d")
    assert oregon.origins[SnapshotPart.ON_DEMAND_PRICES].source == "us-east-1, bundled"
    assert oregon.origins[SnapshotPart.ZONES].at == datetime(2026, 10, 27, tzinfo=UTC)


def test_of_an_unknown_region_only_the_prices_of_another_are_known() -> None:
    nowhere = bundled_snapshot("mars-north-1")

    assert set(nowhere.origins) == {SnapshotPart.ON_DEMAND_PRICES}
    with pytest.raises(UnknownRegionError, match="did you mean eu-west-1"):
        check_region("eu-wset-1")
    check_region("eu-west-1")


def test_bundled_zones_are_those_of_the_reference_data() -> None:
    expected: dict[str, dict[str, list[str]]] = {}
    for row in reference_rows("offerings.csv"):
        zones = expected.setdefault(row["region"], {}).setdefault(row["instance_type"], [])
        zones.append(row["availability_zone"])

    assert {
        region: {
            name: sorted(zones)
            for name, zones in bundled_snapshot(region).zones.items()
            if load_catalogue()[name].source.startswith("moto ")
        }
        for region in known_regions()
        if bundled_snapshot(region).zones
    } == {region: {name: sorted(zones) for name, zones in types.items()} for region, types in expected.items()}
