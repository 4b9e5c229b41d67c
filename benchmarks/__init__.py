"""Measurements: medians and ratios against a floor or a peer of the same run."""
