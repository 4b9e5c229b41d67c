"""Lambda function `observe_task`."""
