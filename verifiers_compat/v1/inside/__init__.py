"""Programs that are copied into sandboxes, where they find nothing but Python: they import nothing of this library."""
