"""The server over HTTP: its contract as JSON, and the pages of the evaluation server."""
