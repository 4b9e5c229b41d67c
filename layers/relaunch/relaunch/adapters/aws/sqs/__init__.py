"""SQS: batches, the attempts and machines queues, and dead-letter queues. Imports ports and the core."""
