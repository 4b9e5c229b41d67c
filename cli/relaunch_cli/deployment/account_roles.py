"""What an account has once and CloudFormation cannot decide on: service-linked roles, and GitHub's OIDC provider.

CloudFormation fails where they exist already, and deletes them with the stack where others use them.
"""

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from relaunch_cli.deployment.findings import AccountRoles

# EC2 Fleet of the type `instant` needs no role of its own.
SERVICES = ("ecs.amazonaws.com", "spot.amazonaws.com")
# The issuer of the tokens of GitHub Actions, and the audience that aws-actions/configure-aws-credentials asks for.
GITHUB_ISSUER = "token.actions.githubusercontent.com"
AUDIENCE = "sts.amazonaws.com"
_THERE_ALREADY = "has been taken in this account"


def read_account_roles(iam: Any, *, with_github: bool) -> AccountRoles:
    """Read which of them the account has.

    Raises:
        BotoCoreError: AWS cannot be reached.
    """
    missing = []
    unread = []
    provider = ""
    for service in SERVICES:
        try:
            # The path of a service-linked role is that of its service ("Using service-linked roles", IAM User Guide).
            if not iam.list_roles(PathPrefix=f"/aws-service-role/{service}/")["Roles"]:
                missing.append(service)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            unread.append(f"whether the account has the service-linked role of {service} cannot be read ({code})")
    if with_github:
        try:
            found = iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]
        except ClientError as error:
            code = error.response["Error"]["Code"]
            unread.append(f"whether the account has an OIDC provider of GitHub cannot be read ({code})")
        else:
            arns = (str(each["Arn"]) for each in found)
            provider = next((arn for arn in arns if arn.endswith(f":oidc-provider/{GITHUB_ISSUER}")), "")
    return AccountRoles(tuple(missing), provider, tuple(unread), tuple(_audience_notes(provider, iam)))


def _audience_notes(provider: str, iam: Any) -> Iterator[str]:
    """Yield why the provider of GitHub, if there is one, lets in no workflow: STS compares the audience of tokens."""
    if not provider:
        return
    try:
        found = iam.get_open_id_connect_provider(OpenIDConnectProviderArn=provider)
    except ClientError as error:
        yield f"the audiences of {provider} cannot be read ({error.response['Error']['Code']})"
        return
    if AUDIENCE not in found.get("ClientIDList", ()):
        yield (
            f"the account's OIDC provider of GitHub does not know the audience {AUDIENCE}, so that STS refuses every "
            "workflow (Incorrect token audience): `aws iam add-client-id-to-open-id-connect-provider --client-id "
            f"{AUDIENCE} --open-id-connect-provider-arn {provider}` adds it, also for roles of others that trust it"
        )


def create_service_linked_role(service: str, iam: Any) -> None:
    """Create a service-linked role; that somebody else has created it meanwhile is as good.

    Raises:
        ClientError, BotoCoreError: the call failed.
    """
    try:
        iam.create_service_linked_role(AWSServiceName=service)
    except ClientError as error:
        # InvalidInput is all that IAM says of a second one (CreateServiceLinkedRole, "Errors").
        if error.response["Error"]["Code"] != "InvalidInput" or _THERE_ALREADY not in str(error):
            raise


def create_github_provider(iam: Any) -> str:
    """Create the OIDC provider of GitHub, and return its ARN; one that was made meanwhile is as good.

    IAM checks GitHub's certificate by its own list of authorities, and needs no thumbprint ("Obtain the thumbprint for
    an OpenID Connect identity provider", IAM User Guide).

    Raises:
        ClientError, BotoCoreError: a call failed.
    """
    try:
        made = iam.create_open_id_connect_provider(Url=f"https://{GITHUB_ISSUER}", ClientIDList=[AUDIENCE])
        return str(made["OpenIDConnectProviderArn"])
    except ClientError as error:
        if error.response["Error"]["Code"] != "EntityAlreadyExists":
            raise
    return read_account_roles(iam, with_github=True).github_provider_arn
