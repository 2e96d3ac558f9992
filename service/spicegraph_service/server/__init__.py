"""The gRPC server: calls in, checked, admitted, coalesced into batches for worker processes, answered.

``run`` puts the parts together; ``evaluation`` and ``references`` are the services of the contract; ``gate``
stands before every call (tokens, limits, errors); ``scheduler``, ``batching`` and ``workers`` bring work to the
processes that ``worker`` and ``evaluate`` are; ``cache`` keeps what was parsed.
"""
