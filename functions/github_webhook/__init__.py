"""Lambda function `github_webhook`."""
