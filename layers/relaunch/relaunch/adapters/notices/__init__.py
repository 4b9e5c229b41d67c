"""Receivers of notices: Slack, Microsoft Teams, Discord, SNS, and any endpoint of Standard Webhooks."""
