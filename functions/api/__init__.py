"""API Gateway HTTP API: everything but the streamed chat."""
