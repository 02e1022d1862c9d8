"""Entry points: decode, one call into `octopus`, encode. No logic."""
