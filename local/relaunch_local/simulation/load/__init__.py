"""Many events at once against AWS's documented limits."""
