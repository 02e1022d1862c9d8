"""SQS: an object has gone; forget the document that it belonged to."""
