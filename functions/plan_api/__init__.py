"""Lambda function `plan_api`."""
