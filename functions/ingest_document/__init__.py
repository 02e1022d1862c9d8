"""SQS: an object has come; index the document that it belongs to."""
