"""The evaluation server as pages and tables."""
