"""The instance types of simulated accounts, and what they cost on demand."""

from collections.abc import Mapping

ON_DEMAND_USD_PER_HOUR: Mapping[str, float] = {"g4dn.xlarge": 0.526, "g5.xlarge": 1.006, "g6.xlarge": 0.8048}
"""The instance types of most simulated accounts, with one GPU each."""
LARGE_TYPES: Mapping[str, str] = {
    "g4dn.xlarge": "g4dn.12xlarge",
    "g5.xlarge": "g5.48xlarge",
    "g6.xlarge": "g6.12xlarge",
}
"""The types with four or eight GPUs that other accounts have in their place."""
NEURON_TYPES: Mapping[str, str] = {
    "g4dn.xlarge": "inf2.xlarge",
    "g5.xlarge": "trn1.2xlarge",
    "g6.xlarge": "inf2.24xlarge",
}
"""The types with one or six Neuron devices that some accounts have in their place."""
NEURON_USD_PER_HOUR: Mapping[str, float] = {"inf2.xlarge": 0.7582, "trn1.2xlarge": 1.34375, "inf2.24xlarge": 6.49063}
USD_PER_HOUR: Mapping[str, float] = {
    **ON_DEMAND_USD_PER_HOUR,
    **NEURON_USD_PER_HOUR,
    "g4dn.12xlarge": 3.912,
    "g5.48xlarge": 16.288,
    "g6.12xlarge": 4.6016,
}
