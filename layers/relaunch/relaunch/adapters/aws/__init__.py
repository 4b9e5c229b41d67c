"""Adapters over AWS services, one package or module per service. Imports ports and the core, nothing of github/."""
