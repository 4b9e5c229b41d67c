import pytest

from fakes.builders import make_instance_type, make_offering
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.offering import (
    BEST_SCORE,
    MAX_QUESTIONS,
    WORST_SCORE,
    ScoreQuestion,
    capacity_factor,
    estimated_interruptions_per_hour,
    interruption_rate_factor,
    score_questions,
    sizes_of_family,
)

OFFERED = ["g5.xlarge", "g6.xlarge", "g5.48xlarge", "g5g.xlarge", "g5.2xlarge", "p4d.24xlarge", "g6.2xlarge"]
VCPUS = {"g5.xlarge": 4, "g5.2xlarge": 8, "g5.48xlarge": 192, "g6.xlarge": 4, "g6.2xlarge": 8, "p4d.24xlarge": 96}
KNOWN = {name: make_instance_type(name, vcpus=vcpus) for name, vcpus in VCPUS.items()}
G5 = ("g5.2xlarge", "g5.48xlarge", "g5.xlarge")


def test_a_type_is_asked_about_with_the_sizes_of_its_family_that_the_region_offers():
    assert sizes_of_family("g5.48xlarge", OFFERED) == ("g5.2xlarge", "g5.48xlarge", "g5.xlarge")


@pytest.mark.parametrize("name", ["g6.xlarge", "p4d.24xlarge", "g5g.xlarge", "x9.large"])
def test_of_a_family_with_fewer_than_three_sizes_nothing_is_asked_because_it_always_scores_low(name):
    assert sizes_of_family(name, OFFERED) == ()


def test_a_type_of_a_capacity_provider_is_asked_about_by_itself():
    assert score_questions(["g5.48xlarge", "g5.xlarge"], [], KNOWN, OFFERED) == (
        ScoreQuestion("g5.48xlarge", G5, 192, ("g5.48xlarge",)),
        ScoreQuestion("g5.xlarge", G5, 4, ("g5.xlarge",)),
    )


def test_of_what_machines_of_our_own_may_be_each_family_is_asked_about_once_for_its_middle_size():
    assert score_questions([], KNOWN, KNOWN, OFFERED) == (ScoreQuestion("g5", G5, 8, G5),)
    assert score_questions([], ["g5.48xlarge", "g5.xlarge"], KNOWN, OFFERED)[0].vcpus == 4, "the smaller of two"


def test_what_a_capacity_provider_has_keeps_its_own_score_beside_its_familys():
    by_type, by_family = score_questions(["g5.xlarge"], G5, KNOWN, OFFERED)

    assert (by_type.about, by_type.vcpus) == (("g5.xlarge",), 4)
    assert (by_family.about, by_family.sizes, by_family.vcpus) == (("g5.2xlarge", "g5.48xlarge"), G5, 8)


@pytest.mark.parametrize("name", ["g5.24xlarge", "g6.xlarge", "p4d.24xlarge", "x9.large"])
def test_nothing_is_asked_about_what_is_not_offered_not_known_or_alone_in_its_family(name):
    known = {**KNOWN, "g5.24xlarge": make_instance_type("g5.24xlarge")}

    assert score_questions([name], [name], known, OFFERED) == ()


def test_families_are_left_out_where_a_question_too_many_would_be_asked_and_types_of_providers_never():
    names = [f"g{family}.{size}xlarge" for family in range(30, 60) for size in (2, 4, 8)]
    known = {name: make_instance_type(name) for name in names}

    assert len(score_questions([], names, known, names)) == MAX_QUESTIONS
    assert len(score_questions(names[:60], names, known, names)) == 60
    assert len(score_questions(names[:3], names, known, names)) == MAX_QUESTIONS


@pytest.mark.parametrize(("score", "share"), [(None, 1.0), (1, 1.0), (4, 5 / 6), (10, 0.5)])
def test_the_best_market_is_taken_to_interrupt_half_as_often_as_the_worst_and_as_an_unknown_one(score, share):
    assert interruption_rate_factor(score) == pytest.approx(share)


def test_a_better_score_reduces_the_usual_rate_of_a_type():
    usual = estimated_interruptions_per_hour("trn1.32xlarge")

    assert make_offering("trn1.32xlarge").interruption_rate == usual
    assert make_offering("trn1.32xlarge", placement_score=10).interruption_rate == pytest.approx(usual / 2)


def test_a_zones_score_is_not_reckoned_with_for_it_is_that_of_all_types_that_were_asked_about():
    usual = estimated_interruptions_per_hour("g5.xlarge")

    assert make_offering(zone="us-east-1a", placement_score=10).interruption_rate == usual
    own = make_offering(zone="us-east-1a", is_own_machine=True, placement_score=10)
    assert own.interruption_rate == pytest.approx(usual / 2)


def test_a_score_changes_neither_a_known_rate_nor_that_of_on_demand():
    measured = make_offering(interruptions_per_hour=0.3, placement_score=10)
    on_demand = make_offering(purchase=PurchaseOption.ON_DEMAND, placement_score=1)

    assert (measured.interruption_rate, on_demand.interruption_rate) == (0.3, 0.0)


def test_the_better_the_score_the_sooner_outages_end_within_a_factor_of_two():
    factors = [capacity_factor(score) for score in range(WORST_SCORE, BEST_SCORE + 1)]

    assert factors == sorted(factors)
    assert factors[-1] / factors[0] == pytest.approx(2.0)
    assert factors[0] * factors[-1] == pytest.approx(1.0)
