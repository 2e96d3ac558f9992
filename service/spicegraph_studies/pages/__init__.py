"""Studies as tables, charts and pages."""
