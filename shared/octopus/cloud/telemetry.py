"""Logs, traces and metrics of every function, by AWS Lambda Powertools.

A log line carries ids and numbers. No line, metric or trace annotation ever carries what a user or a document said.
"""

from __future__ import annotations

from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_xray_sdk.core import xray_recorder

from octopus.cloud.trace_context import TaskContext

logger = Logger(service="octopus")
tracer = Tracer(service="octopus", auto_patch=False)
xray_recorder.configure(context=TaskContext())
metrics = Metrics(namespace="Octopus", service="octopus")
