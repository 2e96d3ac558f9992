"""The contract of spicegraph's gRPC services."""
