"""Agreement with people as tables, files and pages."""
