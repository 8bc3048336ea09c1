"""One integral, fast and enclosed, and safe-side root finding. Numbers in, numbers out; no data, no noise."""
