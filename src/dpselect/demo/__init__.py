"""Simulated data and the demonstration: nobody's readings, so all of it may be shown."""
