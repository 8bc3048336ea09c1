"""Faults by the room they are planted in."""
