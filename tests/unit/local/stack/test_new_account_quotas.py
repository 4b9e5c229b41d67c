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
