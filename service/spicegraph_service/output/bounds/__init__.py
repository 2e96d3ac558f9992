"""What ``spicegraph bounds`` shows, and the processes that it scores in."""
