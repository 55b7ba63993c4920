"""Clients, a module for each provider's API."""
