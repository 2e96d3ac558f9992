"""The evaluation server: private references, submissions and leaderboards, behind the ``ChallengeService``.

``schema`` and ``database`` hold the state, ``files`` what is uploaded; ``accounts``, ``catalogue``, ``submissions``,
``queue`` and ``leaderboard`` are its transactions, plain functions of a session; ``sandbox`` reads what strangers
sent, in processes of its own; ``runner`` validates and scores; ``servicer`` answers the calls; ``service`` starts and
stops them.
"""
