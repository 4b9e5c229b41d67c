"""Lambda function `request_machine`."""
