"""Text out of files."""
