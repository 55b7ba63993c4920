"""Environment classes around other libraries."""

from verifiers_compat.loading import create_getattr

__getattr__ = create_getattr(__name__)
