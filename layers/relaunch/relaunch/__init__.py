"""Event-driven, serverless launcher for machine-learning training."""
