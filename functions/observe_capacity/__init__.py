"""Lambda function `observe_capacity`."""
