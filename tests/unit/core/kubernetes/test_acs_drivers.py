"""The driver of a definition for ACS, held against a list of drivers."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes.acs_drivers import AcsDrivers, ModelDrivers, find_driver_notices, find_strict_problems

L20 = ModelDrivers(("570.133.20", "550.90.07"), "550.90.07")
DRIVERS = AcsDrivers(
    date(2026, 9, 24),
    {
        "T4": ModelDrivers(("580.95.05-open", "535.161.08"), "535.161.08"),
        "L20": L20,
        "GN8IS": L20,
        "G59": ModelDrivers(("575.64.05",)),
        "P16EN": ModelDrivers(("1.5.0", "1.4.1"), "1.4.1", is_nvidia=False),
    },
)
CUDA_13 = "nvidia/cuda:13.0.1-runtime"
UNLISTED = "driver 550.90.07 is not in ACS's list for T4 (580.95.05-open, 535.161.08; 2026-09-24)"
NO_MODEL = "ACS's list of drivers (2026-09-24) has no model"


def define(target: Target = Target.ACS, **fields: Any) -> JobDefinition:
    workload = KubernetesWorkload(fields.pop("image", "trainer"), **fields)
    accelerator = AcceleratorRequirement(gpu=GpuRequirement())
    return make_definition(target=target, kubernetes=workload, accelerator=accelerator)


@pytest.mark.parametrize(
    ("model", "driver", "doubt"),
    [
        ("T4", "535.161.08", ""),
        ("T4", "580.95.05-open", ""),
        ("T4", "550.90.07", UNLISTED),
        ("T4", "1.5.0", "driver 1.5.0 is not in ACS's list for T4 (580.95.05-open, 535.161.08; 2026-09-24)"),
        ("GN8IS", "570.133.20", ""),
        ("P16EN", "1.5.0", ""),
        ("P16EN", "535.161.08", "driver 535.161.08 is not in ACS's list for P16EN (1.5.0, 1.4.1; 2026-09-24)"),
        ("H20", "535.161.08", f"{NO_MODEL} H20: 535.161.08 cannot be checked"),
        ("t4", "535.161.08", f"{NO_MODEL} t4: 535.161.08 cannot be checked; did you mean T4?"),
        ("", "535.161.08", ""),
        ("", "470.82.01", "driver 470.82.01 is in ACS's list for no model (2026-09-24)"),
    ],
)
def test_a_driver_is_looked_up_for_its_model(model, driver, doubt):
    definition = define(gpu_model=model, gpu_driver=driver)
    strict = define(gpu_model=model, gpu_driver=driver, strict=True)

    assert find_driver_notices(definition, DRIVERS) == ((doubt,) if doubt else ())
    assert find_strict_problems(definition, DRIVERS) == ()
    found = [(each.key, each.text) for each in find_strict_problems(strict, DRIVERS)]
    refused = f"{doubt}: name another one, or leave `strict` out"
    assert found == ([(("kubernetes", "gpu_driver"), refused)] if doubt else [])


def test_each_model_with_a_driver_is_named():
    assert DRIVERS.models_with("550.90.07") == ("L20", "GN8IS")
    assert DRIVERS.models_with("470.82.01") == ()


@pytest.mark.parametrize(
    ("model", "notices"),
    [
        ("T4", ()),
        ("", ()),
        ("H20", (f"{NO_MODEL} H20: its default driver is not known here",)),
        ("t4", (f"{NO_MODEL} t4: its default driver is not known here; did you mean T4?",)),
    ],
)
def test_without_a_driver_only_the_model_is_looked_up(model, notices):
    definition = define(gpu_model=model, strict=True)

    assert find_driver_notices(definition, DRIVERS) == notices
    assert find_strict_problems(definition, DRIVERS) == ()


@pytest.mark.parametrize(
    ("fields", "notice"),
    [
        (
            {"gpu_model": "T4", "gpu_driver": "535.161.08"},
            "the image has CUDA 13.0, which needs driver 580.65 or newer; `gpu_driver` is 535.161.08",
        ),
        (
            {"gpu_model": "T4"},
            "the image has CUDA 13.0, which needs driver 580.65 or newer; "
            "ACS's default for T4 (2026-09-24) is 535.161.08",
        ),
        ({"gpu_model": "P16EN"}, "the image has NVIDIA's CUDA 13.0, and P16EN is no NVIDIA card"),
        (
            {"gpu_driver": "570.133.20"},
            "the image has CUDA 13.0, which needs driver 580.65 or newer; `gpu_driver` is 570.133.20",
        ),
        ({"gpu_model": "T4", "gpu_driver": "580.95.05-open"}, None),
        ({"gpu_model": "G59"}, None),
        ({"gpu_model": "P16EN", "image": "acme/trainer:1"}, None),
    ],
)
def test_the_driver_is_held_against_the_image(fields, notice):
    found = find_driver_notices(define(**{"image": CUDA_13} | fields), DRIVERS)

    assert found == ((notice,) if notice else ())


def test_only_acs_chooses_drivers():
    on_ack = define(Target.ACK, image=CUDA_13, gpu_model="T4", gpu_driver="550.90.07", strict=True)
    bare = replace(define(), kubernetes=None)

    for definition in (on_ack, bare):
        assert find_driver_notices(definition, DRIVERS) == ()
        assert find_strict_problems(definition, DRIVERS) == ()
