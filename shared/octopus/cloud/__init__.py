"""Adapters to the outside: the only place that knows boto3, anthropic and (with the stores) psycopg."""
