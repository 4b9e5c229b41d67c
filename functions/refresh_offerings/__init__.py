"""Lambda function `refresh_offerings`."""
