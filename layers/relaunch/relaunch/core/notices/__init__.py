"""Notices of jobs to people and services: what is sent to whom, when, in which words. Imports the events of jobs."""
