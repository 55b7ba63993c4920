"""Plugins for the command lines of others."""
