"""The regions in which the application cannot be deployed, because Lambda has no function URLs there.

Source: "Creating and managing Lambda function URLs" (Lambda Developer Guide), and the types that CloudFormation has in
each region. The guide names eu-south-2 too, where AWS::Lambda::Url is registered.
"""

from relaunch_cli import exit_codes
from relaunch_cli.deployment.refusals import RefusedError

# Each with a near region that has them, and that is on in every account.
_REGIONS_WITHOUT = {
    "ap-east-2": "ap-northeast-1",
    "ap-south-2": "ap-south-1",
    "ap-southeast-4": "ap-southeast-2",
    "ap-southeast-5": "ap-southeast-1",
    "ap-southeast-6": "ap-southeast-2",
    "ap-southeast-7": "ap-southeast-1",
    "ca-west-1": "ca-central-1",
    "eu-central-2": "eu-central-1",
    "il-central-1": "eu-central-1",
    "me-central-1": "ap-south-1",
    "mx-central-1": "us-east-2",
}


def check_function_urls(region: str) -> None:
    """Refuse to deploy where Lambda has no function URLs, which the application's functions for requests have.

    CloudFormation refuses a template with a type that it does not have in the region, also behind a condition that does
    not hold: "Template format error: Unrecognized resource types: [AWS::Lambda::Url]".

    Raises:
        RefusedError: the region has none; the message names another one.
    """
    if near := _REGIONS_WITHOUT.get(region):
        raise RefusedError(
            f"Lambda has no function URLs in {region}, so that CloudFormation refuses the application there; nothing "
            f"was made. Deploy in another region, for example AWS_REGION={near}: a bucket that trainings only read may "
            "stay where it is, but AWS charges for what is read from another region",
            exit_codes.REFUSED,
        )
