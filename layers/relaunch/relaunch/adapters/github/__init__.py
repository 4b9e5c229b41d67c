"""GitHub: deliveries verified, trimmed and read. Imports ports and the core, nothing of aws/.

What runs before the queue (webhook_request, payload_trimming, signature) imports the standard library only.
"""
