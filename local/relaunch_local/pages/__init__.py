"""Generators for pages of docs/; a test fails if a page is out of date. Imports nothing else of relaunch_local."""
