"""The Kubernetes API: its client, its objects and its errors."""
