"""The evaluation server: private references, submissions, a leaderboard, behind the ``ChallengeService``.

``schema`` and ``database`` hold the state, ``files`` what is uploaded; ``accounts``, ``catalogue``, ``submissions``,
``queue`` and ``leaderboard`` are its transactions, plain functions of a session; ``child`` reads what strangers sent
in processes of their own; ``runner`` validates and scores; ``servicer`` answers the calls.
"""
