"""Offerings put together from what is bundled, what was refreshed and present prices. Imports ports and the core."""
