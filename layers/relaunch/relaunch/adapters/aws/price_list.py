"""List prices from the AWS Price List ("GetProducts", AWS Price List API Reference)."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from relaunch.adapters.aws.errors import aws_errors, readable_answer
from relaunch.ports import NotGrantedError, PermanentError, TransientError

if TYPE_CHECKING:
    from mypy_boto3_pricing import PricingClient
    from mypy_boto3_pricing.type_defs import FilterTypeDef

_PAGE_SIZE = 100
_CURRENCY = "USD"
# Linux without licensed software, on demand; "Used" excludes reservations and unused capacity.
_LINUX = {"operatingSystem": "Linux", "preInstalledSw": "NA", "capacitystatus": "Used", "marketoption": "OnDemand"}
# Bare metal is a product family of its own, without shared tenancy.
_INSTANCES = (
    {**_LINUX, "tenancy": "Shared", "productFamily": "Compute Instance"},
    {**_LINUX, "tenancy": "Dedicated", "productFamily": "Compute Instance (bare metal)"},
)
_GP3 = {"productFamily": "Storage", "volumeApiName": "gp3"}


_ENDPOINTS = ("us-east-1", "eu-central-1", "ap-south-1")


def price_list_regions(region: str) -> tuple[str, ...]:
    """Return the regions with an endpoint of the Price List API, the nearest first ("AWS Price List endpoints").

    Each of them knows the prices of all regions.
    """
    nearest = {
        "af": "eu-central-1",
        "ap": "ap-south-1",
        "eu": "eu-central-1",
        "il": "eu-central-1",
        "me": "ap-south-1",
    }
    first = nearest.get(region.partition("-")[0], "us-east-1")
    return (first, *(each for each in _ENDPOINTS if each != first))


class PriceList:
    """Implements PriceListSource for one region; the clients are for `price_list_regions(region)`.

    Where the first endpoint refuses access the others are asked: a policy of an organization that leaves its accounts a
    few regions denies calls to the others, which Karpenter's users have met (aws/karpenter-provider-aws#3522, #8166).
    """

    def __init__(self, client: "PricingClient", region: str, *others: "PricingClient") -> None:
        self._clients = (client, *others)
        self._region = region

    def on_demand_prices(self, instance_types: Iterable[str]) -> Mapping[str, float]:
        wanted = frozenset(instance_types)
        prices: dict[str, float] = {}
        currencies: set[str] = set()
        with readable_answer(f"reading the Price List of {self._region}"):
            for attributes in _INSTANCES:
                for product in self._products(attributes):
                    name = product["product"]["attributes"].get("instanceType")
                    for currency, price in _prices(product) if name in wanted else ():
                        currencies.add(currency)
                        if currency == _CURRENCY:
                            prices[name] = price
        if not prices:
            self._raise_missing("on-demand prices of instance types with accelerators", currencies)
        return prices

    def gp3_price(self) -> float:
        with readable_answer(f"reading the Price List of {self._region}"):
            offered = [each for product in self._products(_GP3) for each in _prices(product)]
        prices = [price for currency, price in offered if currency == _CURRENCY]
        if not prices:
            self._raise_missing("a price of gp3 volumes", {currency for currency, _ in offered})
        return max(prices)

    def _products(self, attributes: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        wanted = {"regionCode": self._region, **attributes}
        filters: list[FilterTypeDef] = [
            {"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()
        ]
        *before, last = self._clients
        for client in before:
            try:
                yield from self._asked(client, filters)
            except NotGrantedError:
                continue
            return
        yield from self._asked(last, filters)

    def _asked(self, client: "PricingClient", filters: "list[FilterTypeDef]") -> Iterator[dict[str, Any]]:
        with aws_errors(f"asking the Price List for {self._region}"):
            pages = client.get_paginator("get_products").paginate(
                ServiceCode="AmazonEC2", Filters=filters, PaginationConfig={"PageSize": _PAGE_SIZE}
            )
            for page in pages:
                for product in page["PriceList"]:
                    yield json.loads(product)

    def _raise_missing(self, what: str, currencies: set[str]) -> None:
        if currencies:
            raise PermanentError(f"the Price List of {self._region} is in {', '.join(sorted(currencies))}, not in USD")
        raise TransientError(f"the Price List has no {what} in {self._region}")


def _prices(product: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield currency and price of on-demand terms; prices of 0 are for reservations and the free tier."""
    for term in product["terms"].get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            for currency, price in dimension["pricePerUnit"].items():
                if 0 < float(price) < math.inf:
                    yield currency, float(price)
