"""Gymnasium environments as chat environments: what they say about themselves, how they are shown, and how they are played."""
