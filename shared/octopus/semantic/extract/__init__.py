"""Text out of untrusted files.

Everything here but `sandbox` runs in a process of its own (`__main__`), which has no credentials, no network, no
right to write, and limited time and memory. A format is a function from a file to blocks, read a piece at a time.
"""
