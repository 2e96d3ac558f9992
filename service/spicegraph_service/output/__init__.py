"""What people and programs read: tables, files, charts and pages."""
