"""Function URL: one streamed turn, as an ASGI app behind Lambda Web Adapter."""
