"""Lambda function `reconcile`."""
