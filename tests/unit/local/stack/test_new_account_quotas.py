from relaunch_local.stack.new_account_quotas import NewAccountQuotas


def test_a_request_is_pending_for_a_while_and_then_granted():
    seconds = [0.0]
    quotas = NewAccountQuotas(lambda: seconds[0])
    request = {"QuotaCode": "L-1", "DesiredValue": 8.0}

    def read() -> tuple[float, int]:
        pending = quotas.call("ListRequestedServiceQuotaChangeHistory", {"Status": "PENDING"})[1]["RequestedQuotas"]
        return quotas.call("GetServiceQuota", request)[1]["Quota"]["Value"], len(pending)

    assert read() == (0.0, 0)
    assert quotas.call("RequestServiceQuotaIncrease", request)[0] == 200
    assert read() == (0.0, 1)
    assert quotas.call("RequestServiceQuotaIncrease", request)[0] == 400
    seconds[0] = 60.0
    assert read() == (8.0, 0)


def test_what_is_not_above_the_default_is_refused_also_where_the_account_has_less():
    seconds = [0.0]
    quotas = NewAccountQuotas(lambda: seconds[0])

    def request(code: str, value: float) -> str:
        return quotas.call("RequestServiceQuotaIncrease", {"QuotaCode": code, "DesiredValue": value})[1].get(
            "message", ""
        )

    concurrency = {"ServiceCode": "lambda", "QuotaCode": "L-B99A9384"}
    assert quotas.call("GetServiceQuota", concurrency)[1]["Quota"] == {**concurrency, "Value": 10.0}
    for value in (130.0, 1000.0):
        refused = request("L-B99A9384", value)
        assert refused == "You must provide a quota value greater than the default quota value of 1000.0"
    assert request("L-DB2E81BA", 0.0) == "You must provide a quota value greater than the default quota value of 0.0"
    assert request("L-B99A9384", 2000.0) == ""
    seconds[0] = 60.0
    assert (
        request("L-B99A9384", 1500.0) == "You must provide a quota value greater than the current quota value of 2000.0"
    )
