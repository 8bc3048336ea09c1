"""Mechanisms: each knows its cost and its release, side by side."""
