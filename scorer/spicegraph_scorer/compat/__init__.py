"""The call shapes of other packages, for code that already uses them."""
