"""What somebody is to be shown of the changes of jobs, and when: pure."""
