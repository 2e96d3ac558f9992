"""Scoring on a Ray cluster, for ``--engine ray``; a wing.

``engine`` is the engine, ``corpus`` what its actors do with blocks of a corpus, ``objects`` the files that they share.
"""
