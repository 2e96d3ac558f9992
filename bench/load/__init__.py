"""What the load of the server is made of: captions, a server process, calls."""
