"""DynamoDB refuses a filter that names a key of what is queried, whatever the name is written like."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.aws import aws_in_process, create_jobs_table, make_client
from relaunch_local.dynamodb.filters import refused_filter

_REFUSED = "Filter Expression can only contain non-primary key attributes: Primary key attribute: "


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"FilterExpression": "attribute_not_exists(expires_at) AND NOT begins_with(sk, :job)"}, "sk"),
        ({"FilterExpression": "#key = :pk", "ExpressionAttributeNames": {"#key": "pk"}}, "pk"),
        ({"FilterExpression": "sk > :a OR pk IN (:b)"}, "pk, sk"),
        ({"FilterExpression": "attribute_not_exists(expires_at)"}, ""),
        ({"FilterExpression": "body.sk = :sk AND #sk = :pk", "ExpressionAttributeNames": {"#sk": "skill"}}, ""),
        ({}, ""),
    ],
)
def test_a_filter_that_names_a_key_is_refused_in_dynamodbs_words(query: Mapping[str, Any], named: str) -> None:
    assert refused_filter(query, {"pk", "sk"}) == (f"{_REFUSED}{named}" if named else "")


@pytest.fixture
def client() -> Iterator[Any]:
    with aws_in_process():
        client = make_client("dynamodb")
        create_jobs_table(client, "jobs")
        yield client


def test_the_keys_of_an_index_are_its_own(client: Any) -> None:
    of_table = {"KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": {"S": "a"}}}
    of_index = of_table | {"KeyConditionExpression": "due = :v", "IndexName": "due"}
    client.query(TableName="jobs", **of_index, FilterExpression="pk <> :v")

    for query, key in ((of_table, "sk"), (of_index, "wake_at")):
        with pytest.raises(ClientError, match=f"Primary key attribute: {key}"):
            client.query(TableName="jobs", **query, FilterExpression=f"{key} <> :v")
