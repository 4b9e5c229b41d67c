from relaunch.core.market.gang_hazard import hazard_of


def test_several_machines_are_lost_a_little_more_often_than_one():
    assert hazard_of(1) == 1
    assert 1.4 < hazard_of(4) < 1.6 < hazard_of(16) < 2.4
