from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.settings import parse_capacity_providers
from relaunch_local.ecs import Purchase
from relaunch_local.stack.training_cluster import (
    INSTANCE_TYPES,
    ZONES,
    Training,
    capacity_providers,
    price_of,
    simulator_settings,
    task_definition,
)


def test_the_capacity_providers_are_written_as_the_application_reads_them() -> None:
    offers = parse_capacity_providers(capacity_providers())

    assert {(offer.instance_type, offer.purchase.value) for offer in offers} == {
        (name, purchase.value) for name in INSTANCE_TYPES for purchase in Purchase
    }
    assert len({offer.name for offer in offers}) == len(offers)


def test_spot_is_cheaper_than_on_demand_and_differs_between_zones() -> None:
    for name in INSTANCE_TYPES:
        on_demand = price_of(name, ZONES[0], Purchase.ON_DEMAND)
        spot = {price_of(name, zone, Purchase.SPOT) for zone in ZONES}
        assert len(spot) == len(ZONES)
        assert on_demand is not None
        assert all(price is not None and price < on_demand for price in spot)


def test_a_type_that_is_not_offered_has_no_price() -> None:
    assert price_of("p5.48xlarge", ZONES[0], Purchase.SPOT) is None


def test_machines_have_the_gpus_of_the_catalogue() -> None:
    shapes, catalogue = simulator_settings().instance_types, load_catalogue()

    assert {name: shape.gpus for name, shape in shapes.items()} == {
        name: catalogue[name].logical_gpu_count for name in INSTANCE_TYPES
    }
    assert shapes["g5.xlarge"].gpu_memory_mib == 22_888
    assert [name for name, shape in shapes.items() if not shape.can_share_gpus] == ["g6f.xlarge"]


def test_the_training_of_the_examples_runs_at_the_pace_asked_for() -> None:
    environment = {
        each["name"]: each["value"]
        for each in task_definition(Training(steps=7, step_delay_seconds=0.5))["containerDefinitions"][0]["environment"]
    }

    assert environment["TRAIN_STEPS"] == "7"
    assert environment["TRAIN_STEP_DELAY_SECONDS"] == "0.5"
    assert environment["AWS_DEFAULT_REGION"] == "eu-central-1"
    assert not [name for name in environment if "HOLD" in name]
    assert Training(hold_at_step=5).environment()["TRAIN_HOLD_AT_STEP"] == "5"
