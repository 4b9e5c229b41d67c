"""A real Kubernetes control plane on loopback: etcd, API server, controllers and scheduler; its nodes are simulated."""
