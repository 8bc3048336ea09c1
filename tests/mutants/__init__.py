"""Faults on purpose: what the tests must notice."""
