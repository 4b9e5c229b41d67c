"""A Kubernetes API server on loopback, as strict as real ones, with clusters of shared GPUs."""
