"""What ``vf-gepa`` is told: options and config files."""
