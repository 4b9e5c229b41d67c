"""Serves MiniStack behind the guard: `python -m relaunch_local.stack.guarded_emulator` in the emulator's environment.

MiniStack does not verify the root user's signatures, takes `test` and any twelve digits for a root key, resets and
reconfigures itself for anybody, and allows every origin; nothing in its configuration changes that.
"""

import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack.core import iam_actions, lambda_runtime
from ministack.core.iam_evaluator import (
    AuthError,
    ParsedStatement,
    ResolvedCredential,
    is_root_access_key,
    resolve_credential,
    resolve_principal,
)
from ministack.core.responses import error_response_json
from ministack.services import dynamodb, sts

from relaunch_local.dynamodb.filters import keys_of, refused_filter
from relaunch_local.iam.calls import CalledAccount, CallPermissions
from relaunch_local.iam.policies import PolicyDocument
from relaunch_local.iam.requests import RequestAuthorizer
from relaunch_local.internet.routes import FUNCTION_PATH_VARIABLE
from relaunch_local.request_guard.asgi import GuardedApplication
from relaunch_local.request_guard.credentials import Credentials, function_access_key, function_secret
from relaunch_local.request_guard.guard import HOSTS_VARIABLE, LOOPBACK_HOSTS, REFUSAL, RequestGuard, SecretOf
from relaunch_local.request_guard.signature import RequestHead, parse_signature
from relaunch_local.stack.shared_layers import SharedLayers, share_layers

# GitHub has no AWS credentials; a request with a signature is verified here too. Without an id MiniStack takes the path
# for one of another service.
FUNCTION_URL = re.compile(r"/_aws/lambda-url/[a-z0-9]+(/|$)")


def main() -> None:
    """Serve at BIND_HOST:GATEWAY_PORT, with the root user's credentials in AWS's variables."""
    root = Credentials(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
    hosts = [host for host in os.environ.pop(HOSTS_VARIABLE, "").split(",") if host]
    # Functions inherit the environment, and are to import their own packages only, and how they reach the internet.
    del os.environ["PYTHONPATH"]
    if path := os.environ.pop(FUNCTION_PATH_VARIABLE, ""):
        os.environ["PYTHONPATH"] = path
    replace_function_credentials(root)
    # Its modules take what has been replaced when they are imported.
    from ministack.app import app  # noqa: PLC0415
    from ministack.services import lambda_svc  # noqa: PLC0415

    account = os.environ["MINISTACK_ACCOUNT_ID"]
    region = os.environ["MINISTACK_REGION"]
    name_callers(lambda_svc, account)
    calls = CallPermissions(CalledAccount(account, region))
    give_event_keys(calls)
    name_parameter_paths()
    refuse_keys_in_filters()
    unpacked = Path(tempfile.mkdtemp(prefix="layers-"))
    share_layers(lambda_runtime.Worker, SharedLayers(unpacked, lambda_svc._resolve_layer_zip))  # noqa: SLF001
    guard = RequestGuard(secrets_of(root, account), LOOPBACK_HOSTS.union(hosts))
    authorizer = RequestAuthorizer(partial(policies_of, account), calls, report_refusal)
    config = Config()
    config.bind = [f"{os.environ['BIND_HOST']}:{os.environ['GATEWAY_PORT']}"]
    # As MiniStack serves itself.
    config.keep_alive_timeout = 75
    asyncio.run(serve(GuardedApplication(app, guard, FUNCTION_URL, authorizer.check), config))


def secrets_of(root: Credentials, account: str) -> SecretOf:
    """Return the function that finds the secrets of the root user, of sessions and of IAM users of the account."""

    def secret_of(access_key_id: str) -> str | None:
        if is_root_access_key(access_key_id):
            return root.secret_access_key if access_key_id == root.access_key_id else None
        found = resolve_credential(access_key_id, account)
        return found.secret_access_key if isinstance(found, ResolvedCredential) else None

    return secret_of


def policies_of(account: str, access_key_id: str) -> list[PolicyDocument] | None:
    """Return the policies of an access key as they were written, or None for the root user's.

    MiniStack evaluates them too. It takes an operator or a condition key that it does not know for one that does not
    hold, and does not tell the indexes of a table from the table.
    """
    principal = resolve_principal(access_key_id, account)
    if isinstance(principal, AuthError) or principal.policies is None:
        return None
    return [{"Statement": [_written(each) for each in statements]} for statements in principal.policies]


def _written(statement: ParsedStatement) -> dict[str, Any]:
    elements = {
        "Action": statement.actions,
        "NotAction": statement.not_actions,
        "Resource": statement.resources,
        "NotResource": statement.not_resources,
        "Condition": statement.conditions,
    }
    return {"Effect": statement.effect, **{name: value for name, value in elements.items() if value}}


def report_refusal(message: str) -> None:
    """Write a refusal into the log of the emulator, in a form that the local world finds again."""
    sys.stdout.write(f"{REFUSAL} {message}\n")


def replace_function_credentials(root: Credentials) -> None:
    """Give functions secrets that nobody can know: MiniStack's are hashes of the ARNs of function and role."""

    def execution_credentials(config: Mapping[str, str]) -> dict[str, str]:
        function = config["FunctionArn"]
        role = config["Role"]
        account = role.split(":")[4]
        role_name = role.rsplit("/", 1)[-1]
        session_name = config["FunctionName"][:64]
        key = function_access_key(function, role)
        # All execution environments of a function have one session, which each registers when it starts.
        secret = function_secret(root, key)
        token = function_secret(root, f"token of {key}")
        session = {
            "Arn": f"arn:aws:sts::{account}:assumed-role/{role_name}/{session_name}",
            "UserId": f"{role_name}:{session_name}",
            "SecretAccessKey": secret,
            "SessionToken": token,
        }
        sts.register_session(key, session)
        return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": token}

    lambda_runtime.execution_credentials = execution_credentials


def name_callers(lambda_svc: Any, account: str) -> None:
    """Name the caller in the events of function URLs, as Lambda does with AuthType AWS_IAM; MiniStack does not.

    The guard has verified the signature, and MiniStack the permission lambda:InvokeFunctionUrl.
    """
    build_event = lambda_svc._build_function_url_event  # noqa: SLF001 - MiniStack has no other place for it

    def build_named_event(*arguments: Any, **keywords: Any) -> dict[str, Any]:
        event: dict[str, Any] = build_event(*arguments, **keywords)
        signed = parse_signature(RequestHead("POST", "/", list(event["headers"].items())))
        if signed is not None:
            event["headers"].pop("authorization")
            event["requestContext"]["authorizer"] = {"iam": identity_of(signed.access_key_id, account)}
        return event

    lambda_svc._build_function_url_event = build_named_event  # noqa: SLF001


def give_event_keys(calls: CallPermissions) -> None:
    """Give the condition keys of EventBridge their values, which MiniStack does not: it refused every event of ours."""
    tag_keys = iam_actions.request_tag_context

    def request_keys(service: str, action: str, body: bytes, parameters: dict[str, Any]) -> dict[str, Any]:
        keys: dict[str, Any] = tag_keys(service, action, body, parameters)
        if action in {"events:PutEvents", "events:PutRule"}:
            for permission in calls.required("", "events", action.partition(":")[2], json.loads(body)):
                for name, values in permission.context.items():
                    keys[name.lower()] = list(dict.fromkeys([*keys.get(name.lower(), ()), *(values or ())])) or None
        return keys

    iam_actions.request_tag_context = request_keys


def name_parameter_paths() -> None:
    """Name the path that GetParametersByPath reads as its resource; MiniStack takes it for a call of all parameters."""
    find_resource = iam_actions.extract_resource_arn

    def resource_arn(service: str, method: str, path: str, headers: Mapping[str, str], body: bytes, *more: Any) -> str:
        found: str = find_resource(service, method, path, headers, body, *more)
        if service == "ssm" and found == "*" and (read := json.loads(body or b"{}").get("Path")):
            _parameters, region, account = more
            return f"arn:aws:ssm:{region}:{account}:parameter{read}"
        return found

    iam_actions.extract_resource_arn = resource_arn


def refuse_keys_in_filters() -> None:
    """Refuse queries whose filter names a key of what they query, as DynamoDB does; MiniStack takes them."""
    query = dynamodb._query  # noqa: SLF001 - MiniStack has no other place for it

    def checked_query(data: dict[str, Any]) -> Any:
        table = dynamodb._tables.get(dynamodb._normalize_table_name(data.get("TableName")))  # noqa: SLF001
        message = refused_filter(data, keys_of(table, data.get("IndexName"))) if table else ""
        return error_response_json("ValidationException", message, 400) if message else query(data)

    dynamodb._query = checked_query  # noqa: SLF001


def identity_of(access_key_id: str, account: str) -> dict[str, str | None]:
    """Return the caller as in `requestContext.authorizer.iam`."""
    arn = f"arn:aws:iam::{account}:root"
    user_id = account
    found = resolve_credential(access_key_id, account)
    if isinstance(found, ResolvedCredential) and not is_root_access_key(access_key_id):
        arn = found.principal_arn
        user_id = found.principal_id
        account = found.account_id
    return {
        "accessKey": access_key_id,
        "accountId": account,
        "callerId": user_id,
        "cognitoIdentity": None,
        "principalOrgId": None,
        "userArn": arn,
        "userId": user_id,
    }


if __name__ == "__main__":
    main()
