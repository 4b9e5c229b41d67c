"""The bundled list of ACS's drivers."""

from datetime import date

from relaunch.adapters.acs_driver_list import load_acs_drivers


def test_the_list_has_its_day_and_the_drivers_of_each_name_of_a_model_newest_first():
    drivers = load_acs_drivers()

    assert drivers.at == date(2026, 9, 24)
    assert drivers.models["T4"].versions == ("580.95.05-open", "570.133.20", "535.161.08", "525.105.17")
    assert drivers.models["T4"].default == "535.161.08"
    assert drivers.models["GN8IS"] is drivers.models["L20"]
    assert [name for name, model in drivers.models.items() if not model.is_nvidia] == ["P16EN"]


def test_a_default_is_one_of_the_versions_or_none_is_marked():
    models = load_acs_drivers().models

    assert all(model.versions for model in models.values())
    assert {name for name, model in models.items() if not model.default} == {"G49E", "G59", "G28Ti"}
    assert all(not model.default or model.default in model.versions for model in models.values())
