"""Creates the dependencies of the sweep of GitHub's failed deliveries, which other functions do not need."""

import os

from relaunch.adapters.aws.dynamodb.deliveries import DynamoDbDeliveries
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.adapters.aws.secret_text import SecretText
from relaunch.adapters.github.webhook_api import GithubWebhookApi
from relaunch.bootstrap import SystemClock, emf_metrics, environment_clients
from relaunch.observability import PowertoolsLog
from relaunch.ports.deliveries import DeliveryDependencies
from relaunch.setting_values import required


def delivery_dependencies() -> DeliveryDependencies:
    """Return the dependencies of one pass; the token may have been replaced since the one before.

    Raises:
        InvalidSettingsError: an environment variable that template.yaml sets is missing.
    """
    table = required(os.environ, "RELAUNCH_TABLE")
    clients = environment_clients()
    dynamodb = clients.lazy("dynamodb")
    secrets = clients.lazy("secretsmanager")
    urls = [os.environ.get(name, "") for name in ("RELAUNCH_WEBHOOK_URL", "RELAUNCH_GITHUB_WEBHOOK_URL")]
    token = SecretText(secrets, required(os.environ, "RELAUNCH_GITHUB_TOKEN_SECRET_ARN"))
    return DeliveryDependencies(
        definitions=DynamoDbStores(dynamodb, table).definitions,
        deliveries=DynamoDbDeliveries(dynamodb, table),
        webhooks=GithubWebhookApi(required(os.environ, "RELAUNCH_GITHUB_API_URL"), urls, token.read),
        clock=SystemClock(),
        log=PowertoolsLog(),
        metrics=emf_metrics(),
    )
