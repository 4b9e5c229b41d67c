import pytest

from fakes.builders import make_instance_type
from relaunch.core.offerings.instance_types import is_same_name, known_models, known_neuron_models, nearest_names

TYPES = ("g5.xlarge", "g5.2xlarge", "g6.xlarge", "p5.48xlarge", "inf1.xlarge")
MODELS = ("A10G", "A100", "H100", "H200", "L4", "L40S", "RTX PRO 6000", "T4", "T4g", "V100")


@pytest.mark.parametrize(
    ("name", "known", "nearest"),
    [
        pytest.param("g5xlarge", TYPES, "g5.xlarge", id="a dot left out"),
        pytest.param("Inf1.xlarge", TYPES, "inf1.xlarge", id="upper case"),
        pytest.param("g5.xlagre", TYPES, "g5.xlarge", id="letters swapped"),
        pytest.param("p5.48", TYPES, "p5.48xlarge", id="only the beginning"),
        pytest.param("H100-80GB", MODELS, "H100", id="a model with its memory"),
        pytest.param("Tesla V100", MODELS, "V100", id="a model with its brand"),
        pytest.param("rtx-pro-6000", MODELS, "RTX PRO 6000", id="dashes for spaces"),
        pytest.param("A10", MODELS, "A100", id="two are as near, the first by name is first"),
    ],
)
def test_a_mistyped_name_finds_the_nearest_known_one(name: str, known: tuple[str, ...], nearest: str) -> None:
    assert nearest_names(name, known)[0] == nearest


@pytest.mark.parametrize("name", ["banana", "", "x"])
def test_a_name_near_to_nothing_finds_nothing(name: str) -> None:
    assert nearest_names(name, TYPES) == ()


def test_nothing_is_near_to_a_name_that_is_longer_than_any() -> None:
    assert nearest_names("g5.xlarge" * 20_000, TYPES) == ()


def test_no_more_names_than_asked_for_are_named() -> None:
    assert nearest_names("g5.xlarge", TYPES, limit=1) == ("g5.xlarge",)
    assert len(nearest_names("g5.xlarge", TYPES)) == 3


def test_names_are_the_same_whatever_stands_between_their_letters() -> None:
    assert is_same_name("rtx_pro-6000", "RTX PRO 6000")
    assert not is_same_name("A10", "A10G")


def test_known_models_are_those_of_gpus_that_jobs_can_use() -> None:
    neuron = make_instance_type("inf2.xlarge", accelerator_manufacturer="AWS", gpu_count=0, logical_gpu_count=0)
    amd = make_instance_type("g4ad.xlarge", accelerator_manufacturer="AMD", accelerator_model="Radeon Pro V520")
    fraction = make_instance_type("g6f.xlarge", accelerator_model="L4", gpu_count=0, gpu_partition_size=0.125)

    types = (make_instance_type(), neuron, amd, fraction)

    assert known_models({each.name: each for each in types}) == ("A10G", "L4")


@pytest.mark.parametrize(
    ("name", "is_near"),
    [
        pytest.param("zabcxdefyghiz", True, id="four letters too many of thirteen"),
        pytest.param("zabcxdefyghizz", False, id="five of fourteen"),
        pytest.param("abxdexghx", True, id="three others of nine"),
        pytest.param("xbxdexghx", False, id="four others of nine"),
        pytest.param("bcefhi", True, id="three left out of nine"),
        pytest.param("bcefh", False, id="four left out of nine"),
    ],
)
def test_a_name_is_near_when_at_most_a_third_of_its_letters_are_wrong(name: str, is_near: bool) -> None:
    assert nearest_names(name, ["abcdefghi"]) == (("abcdefghi",) if is_near else ())


@pytest.mark.parametrize(("name", "known"), [("gruop", "group"), ("mian", "main"), ("pahts", "paths")])
def test_neighbours_that_are_exchanged_are_one_mistake(name: str, known: str) -> None:
    assert nearest_names(name, [known]) == (known,)
    assert nearest_names(name[::-1], [known]) == ()


def test_the_more_letters_are_right_the_nearer_a_name_is() -> None:
    known = ("abcdefghxyzi", "abcdefxhi", "xabcdefghyi", "bcdefxgi")

    assert nearest_names("abcdefghi", known, limit=4) == ("abcdefxhi", "xabcdefghyi", "abcdefghxyzi", "bcdefxgi")


def test_two_letters_in_common_are_a_part_of_a_name_and_one_is_not() -> None:
    assert nearest_names("g5", TYPES) == ("g5.xlarge", "g5.2xlarge")
    assert nearest_names("g", TYPES) == ()
    assert nearest_names("p4e", ["p4d"]) == ("p4d",)


def test_known_neuron_models_are_those_of_devices() -> None:
    types = [
        make_instance_type("inf2.xlarge", accelerator_model="Inferentia2", logical_gpu_count=0, neuron_devices=1),
        make_instance_type("trn1.2xlarge", accelerator_model="Trainium", logical_gpu_count=0, neuron_devices=1),
        make_instance_type(),
    ]

    assert known_neuron_models({each.name: each for each in types}) == ("Inferentia2", "Trainium")
    assert [each.is_for_inference for each in types] == [True, False, False]
