"""Conversations: the log of what was said, and who may write the next line of it."""
