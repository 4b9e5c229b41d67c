"""Lambda function `send_notices`."""
