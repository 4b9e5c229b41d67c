import json
from contextlib import suppress
from typing import Any, cast

import pytest
from botocore.stub import Stubber
from hypothesis import given

from fakes.aws import make_client
from fakes.json_values import mutated, write
from relaunch.adapters.aws.price_list import PriceList, price_list_regions
from relaunch.ports import NotGrantedError, PermanentError, TransientError

SERVICE = "pricing"


def asked(tenancy: str, family: str, token: str = "") -> dict[str, Any]:
    wanted = {
        "regionCode": "eu-west-1",
        "operatingSystem": "Linux",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        "tenancy": tenancy,
        "productFamily": family,
    }
    filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()]
    return {"ServiceCode": "AmazonEC2", "Filters": filters, "MaxResults": 100} | ({"NextToken": token} if token else {})


def product(*prices: tuple[str, str], **attributes: str) -> str:
    """A product with one term, a dimension for each price."""
    dimensions = {str(number): {"pricePerUnit": {currency: price}} for number, (currency, price) in enumerate(prices)}
    terms = {"OnDemand": {"SKU.JRTCKXETXF": {"priceDimensions": dimensions}}} if prices else {}
    return json.dumps({"product": {"attributes": attributes}, "terms": terms})


def machine(name: str, price: str, currency: str = "USD") -> str:
    return product((currency, price), instanceType=name)


def answer(stubber: Stubber, *products: str, expected: dict[str, Any] | None = None, token: str = "") -> None:
    page = {"PriceList": list(products)} | ({"NextToken": token} if token else {})
    stubber.add_response("get_products", page, expected)


def test_prices_of_shared_machines_and_of_bare_metal_are_read_page_by_page(stubber: Stubber) -> None:
    shared = ("Shared", "Compute Instance")
    answer(
        stubber, machine("g5.xlarge", "1.1230000000"), machine("c5.large", "0.1"), expected=asked(*shared), token="2"
    )
    answer(stubber, machine("p2.xlarge", "0.9"), machine("g6.xlarge", "0.9"), expected=asked(*shared, token="2"))
    answer(stubber, machine("g4dn.metal", "8.732"), expected=asked("Dedicated", "Compute Instance (bare metal)"))

    prices = PriceList(stubber.client, "eu-west-1").on_demand_prices(
        ["g5.xlarge", "g6.xlarge", "g4dn.metal", "trn2.48xlarge"]
    )

    assert prices == {"g5.xlarge": 1.123, "g6.xlarge": 0.9, "g4dn.metal": 8.732}


def test_a_price_of_nothing_and_a_product_without_terms_are_no_prices(stubber: Stubber) -> None:
    answer(
        stubber,
        product(("USD", "0.0000000000"), ("USD", "1.1"), instanceType="g5.xlarge"),
        product(instanceType="g6.xlarge"),
        product(("USD", "3"), usagetype="no machine"),
    )
    answer(stubber)

    assert PriceList(stubber.client, "eu-west-1").on_demand_prices(["g5.xlarge", "g6.xlarge"]) == {"g5.xlarge": 1.1}


def test_a_gibibyte_of_gp3_has_a_price(stubber: Stubber) -> None:
    wanted = {"regionCode": "eu-west-1", "productFamily": "Storage", "volumeApiName": "gp3"}
    filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()]
    expected = {"ServiceCode": "AmazonEC2", "Filters": filters, "MaxResults": 100}
    answer(stubber, product(("USD", "0.0880000000"), volumeApiName="gp3"), expected=expected)

    assert PriceList(stubber.client, "eu-west-1").gp3_price() == 0.088


def test_prices_in_another_currency_are_not_taken_for_dollars(stubber: Stubber) -> None:
    answer(stubber, machine("p3.2xlarge", "36.078", "CNY"))
    answer(stubber)
    answer(stubber, product(("CNY", "0.5")))
    china = PriceList(stubber.client, "cn-north-1")

    with pytest.raises(PermanentError, match="the Price List of cn-north-1 is in CNY, not in USD"):
        china.on_demand_prices(["p3.2xlarge"])
    with pytest.raises(PermanentError, match="CNY"):
        china.gp3_price()


def test_no_price_at_all_is_not_believed(stubber: Stubber) -> None:
    answer(stubber, machine("c5.large", "0.1"))
    answer(stubber)
    answer(stubber)

    with pytest.raises(TransientError, match="no on-demand prices"):
        PriceList(stubber.client, "eu-west-1").on_demand_prices(["g5.xlarge"])
    with pytest.raises(TransientError, match="gp3"):
        PriceList(stubber.client, "eu-west-1").gp3_price()


@pytest.mark.parametrize(
    ("code", "error"), [("ThrottlingException", TransientError), ("AccessDeniedException", PermanentError)]
)
def test_a_refusal_says_whether_to_try_again(stubber: Stubber, code: str, error: type[Exception]) -> None:
    stubber.add_client_error("get_products", code)

    with pytest.raises(error, match="asking the Price List for eu-west-1"):
        PriceList(stubber.client, "eu-west-1").on_demand_prices(["g5.xlarge"])


@pytest.mark.parametrize(
    ("region", "endpoint"),
    [
        ("us-east-2", "us-east-1"),
        ("ca-central-1", "us-east-1"),
        ("sa-east-1", "us-east-1"),
        ("eu-west-1", "eu-central-1"),
        ("af-south-1", "eu-central-1"),
        ("ap-northeast-1", "ap-south-1"),
        ("me-central-1", "ap-south-1"),
    ],
)
def test_prices_are_asked_for_at_the_nearest_of_the_few_endpoints_first(region: str, endpoint: str) -> None:
    first, *others = price_list_regions(region)

    assert first == endpoint
    assert sorted((first, *others)) == ["ap-south-1", "eu-central-1", "us-east-1"]


def test_where_an_organization_denies_a_region_another_endpoint_is_asked(stubber: Stubber) -> None:
    with Stubber(make_client("pricing")) as other:
        for _ in ("shared", "bare metal"):
            stubber.add_client_error("get_products", "AccessDeniedException", "explicit deny")
        answer(other, machine("g5.xlarge", "1.123"), expected=asked("Shared", "Compute Instance"))
        answer(other)
        prices = PriceList(stubber.client, "eu-west-1", other.client)

        assert prices.on_demand_prices(["g5.xlarge"]) == {"g5.xlarge": 1.123}
        other.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("codes", "error"),
    [
        (["ThrottlingException"], TransientError),
        (["AccessDeniedException", "AccessDeniedException"], NotGrantedError),
    ],
)
def test_others_are_asked_for_a_denial_alone_and_may_deny_too(
    stubber: Stubber, codes: list[str], error: type[Exception]
) -> None:
    with Stubber(make_client("pricing")) as other:
        for each, code in zip((stubber, other), codes, strict=False):
            each.add_client_error("get_products", code)

        with pytest.raises(error, match="asking the Price List for eu-west-1"):
            PriceList(stubber.client, "eu-west-1", other.client).gp3_price()


@given(document=mutated([json.loads(machine("g5.xlarge", "1.1230000000"))]).map(write))
def test_an_answer_of_any_form_has_prices_or_is_waited_for(document: str) -> None:
    class Client:
        def get_paginator(self, _: str) -> "Client":
            return self

        def paginate(self, **_: Any) -> list[dict[str, Any]]:
            return [{"PriceList": [document]}]

    prices = PriceList(cast("Any", Client()), "eu-west-1")
    for read in (lambda: prices.on_demand_prices(["g5.xlarge"])["g5.xlarge"], prices.gp3_price):
        with suppress(TransientError, PermanentError):
            assert 0 < read() < float("inf")


@pytest.mark.parametrize("price", ["Infinity", "1e400", "nan", "-1"])
def test_what_is_no_price_is_none(stubber: Stubber, price: str) -> None:
    answer(stubber, product(("USD", price)))

    with pytest.raises(TransientError, match="has no a price of gp3 volumes"):
        PriceList(stubber.client, "eu-west-1").gp3_price()


def test_an_answer_of_another_form_is_temporary_and_says_what_was_read(stubber: Stubber) -> None:
    answer(stubber, '{"product": {"attributes": []}, "terms": {}}')

    with pytest.raises(TransientError, match="reading the Price List of eu-west-1: AWS answers in a form that this"):
        PriceList(stubber.client, "eu-west-1").on_demand_prices(["g5.xlarge"])
