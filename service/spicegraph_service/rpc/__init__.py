"""The gRPC server: calls are checked, admitted, coalesced into batches for worker processes, and answered."""
# Every call passes ``interceptor`` (callers, limits, errors); ``scheduler`` and ``batching`` bring work to the
# processes of ``workers``, which run ``evaluate``; ``cache`` keeps what was parsed. ``spicegraph_service.app`` builds
# the server.
