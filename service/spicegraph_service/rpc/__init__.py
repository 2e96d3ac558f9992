"""The gRPC server: calls are checked, admitted, coalesced into batches for worker processes, and answered.

``service`` says what a service of the contract is; ``host`` says what a server offers to one, and opens those of this
package; other packages register theirs (``registry``).
Every call passes ``interceptor`` (callers, limits, errors); ``scheduler`` and ``batching`` bring work to the processes
of ``workers``, which run ``evaluate``; ``cache`` keeps what was parsed. ``spicegraph_service.app`` builds the server.
"""
