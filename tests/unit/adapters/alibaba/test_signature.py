"""The signature of Alibaba Cloud's documentation, and what changes it."""

from datetime import UTC, datetime

from relaunch.adapters.alibaba.signature import Credentials, Operation, canonical_query, sign

# The fixed example of "V3 request structure and signature".
EXAMPLE = Operation(
    "RunInstances",
    "2014-05-26",
    "POST",
    "ecs.cn-shanghai.aliyuncs.com",
    "/",
    {"RegionId": "cn-shanghai", "ImageId": "win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd"},
)
AT = datetime(2023, 10, 26, 10, 22, 32, tzinfo=UTC)
NONCE = "3156853299f313e23d1673dc12e1703d"
KEY = Credentials("YourAccessKeyId", "YourAccessKeySecret")


def test_the_documented_example() -> None:
    headers = sign(EXAMPLE, KEY, AT, NONCE)

    assert headers["Authorization"] == (
        "ACS3-HMAC-SHA256 Credential=YourAccessKeyId,"
        "SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,"
        "Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"
    )


def test_a_security_token_is_signed_too() -> None:
    headers = sign(EXAMPLE, Credentials("id", "secret", "token-7"), AT, NONCE)

    assert headers["x-acs-security-token"] == "token-7"
    assert ";x-acs-security-token;" in headers["Authorization"]


def test_a_query_is_signed_in_percent_encoding() -> None:
    assert canonical_query({"b": "a b+c/d", "a": "~é*"}) == "a=~%C3%A9%2A&b=a%20b%2Bc%2Fd"


def test_nothing_secret_is_in_the_repr() -> None:
    assert repr(Credentials("id", "secret", "token-7")) == "Credentials(access_key_id='id')"
