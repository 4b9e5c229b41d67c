"""CloudFormation and Lambda, as far as they say which functions a stack has and what these have reserved."""

from typing import Any

from botocore.exceptions import ClientError


class FakeReceivers:
    """A stack without the functions in `missing`; `refusal` is what CloudFormation says of the others."""

    def __init__(self, refusal: str = "", missing: tuple[str, ...] = ()) -> None:
        self._refusal = refusal
        self._missing = missing
        self.reserved: dict[str, int] = {}

    def describe_stack_resource(self, **request: str) -> Any:
        code = "ValidationError" if request["LogicalResourceId"] in self._missing else self._refusal
        if code:
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeStackResource")
        return {"StackResourceDetail": {"PhysicalResourceId": f"relaunch-{request['LogicalResourceId']}"}}

    def get_function_concurrency(self, **request: str) -> dict[str, int]:
        name = request["FunctionName"]
        return {"ReservedConcurrentExecutions": self.reserved[name]} if name in self.reserved else {}

    def put_function_concurrency(self, **request: Any) -> None:
        self.reserved[request["FunctionName"]] = request["ReservedConcurrentExecutions"]

    def delete_function_concurrency(self, **request: str) -> None:
        del self.reserved[request["FunctionName"]]
