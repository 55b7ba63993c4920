"""Vector environments of chat environments."""
