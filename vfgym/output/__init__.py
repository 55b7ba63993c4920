"""What leaves the library as text: printed, logged or recorded. It holds no secrets and no control characters."""
