"""A change of the embedding model, while queries go on: for operators."""
