"""A wing: JSON over HTTP, the report form, and ``view`` and ``demo`` in the browser."""
