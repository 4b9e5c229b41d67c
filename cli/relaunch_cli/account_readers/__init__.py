"""Reads an AWS account for the checks of account_checks; nothing is changed."""
