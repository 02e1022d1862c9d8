#!/bin/sh
# The function's handler. Lambda Web Adapter (layer, AWS_LAMBDA_EXEC_WRAPPER=/opt/bootstrap) runs it in the place of
# Python's runtime client, which cannot stream, and passes each request on as HTTP. uvicorn keeps a connection for 5 s,
# the adapter for 4, so neither talks to a closed one.
PYTHONPATH="${LAMBDA_TASK_ROOT:?}:${LAYER_ROOT:-/opt}/python" exec python -m uvicorn functions.chat.app:app \
  --host 127.0.0.1 --port "${AWS_LWA_PORT:-8080}" --loop asyncio --http h11 --ws none --lifespan on \
  --no-access-log --no-server-header --log-level warning
