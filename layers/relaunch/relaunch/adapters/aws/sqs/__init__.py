"""SQS: batches, the attempts queue, and dead-letter queues. Imports ports and the core."""
