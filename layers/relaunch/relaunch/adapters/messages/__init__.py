"""Messages of the queues and requests to `job_api`, read by pydantic models.

Imports ports, the core, and the readers of aws/ and github/.
"""
