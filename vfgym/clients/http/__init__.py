"""How requests travel: connections, retries, the lean way to ask for JSON, and the SDKs on the same connections."""
