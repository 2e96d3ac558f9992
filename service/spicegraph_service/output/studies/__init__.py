"""Studies as every output shows them: tables for a terminal, CSV, LaTeX, JSON, and a page with charts."""
