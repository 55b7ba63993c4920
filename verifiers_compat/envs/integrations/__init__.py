"""Environment classes around other libraries."""
