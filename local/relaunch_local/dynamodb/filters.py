"""A query's filter names no key: DynamoDB refuses it before it reads an item, and neither moto nor MiniStack does.

"A filter expression cannot contain partition key or sort key attributes" ("Filter expressions for the Query operation",
Amazon DynamoDB Developer Guide). Those of a queried index are its own.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from botocore.exceptions import ClientError

# What begins with a colon is a value.
_NAME = re.compile(r"(?<![:\w.#])#?[A-Za-z_]\w*")


def refused_filter(query: Mapping[str, Any], keys: Collection[str]) -> str:
    """Return the words with which DynamoDB refuses the filter of a query by these keys; empty if it takes it."""
    aliases = query.get("ExpressionAttributeNames") or {}
    written = _NAME.findall(query.get("FilterExpression") or "")
    named = sorted({aliases.get(each, each) for each in written} & set(keys))
    if not named:
        return ""
    words = "Filter Expression can only contain non-primary key attributes: Primary key attribute:"
    return f"{words} {', '.join(named)}"


def keys_of(table: Mapping[str, Any], index: str | None) -> set[str]:
    """Return the key attributes of a table, or of one of its indexes, as CreateTable and CloudFormation have them."""
    indexes = {each["IndexName"]: each for each in table.get("GlobalSecondaryIndexes", ())}
    schema = indexes.get(index, table) if index else table
    return {each["AttributeName"] for each in schema["KeySchema"]}


def refuse_keys_in_filters(client: Any, table: Mapping[str, Any]) -> None:
    """Let a boto3 client raise what DynamoDB answers to queries of a table whose filters name a key of it."""

    def check(params: Mapping[str, Any], **_: Any) -> None:
        if message := refused_filter(params, keys_of(table, params.get("IndexName"))):
            raise ClientError({"Error": {"Code": "ValidationException", "Message": message}}, "Query")

    client.meta.events.register("provide-client-params.dynamodb.Query", check)
