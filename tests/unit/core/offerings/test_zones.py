from relaunch.core.offerings.zones import zone_ends


def test_zones_are_named_without_their_region():
    assert zone_ends(["us-west-2b", "us-west-2a", "us-west-2a", "us-west-2-lax-1a"]) == ("-lax-1a", "a", "b")
    assert zone_ends(["us-gov-west-1c", "ap-northeast-1a"]) == ("a", "c")
