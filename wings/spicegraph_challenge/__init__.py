"""The evaluation server: private references, submissions and leaderboards, behind the ``ChallengeService``.

``schema`` and ``database`` hold the state, ``files`` what is uploaded; ``accounts``, ``catalogue``, ``submissions`` and
``leaderboard`` are its transactions, plain functions of a session. ``sandbox`` runs ``tasks``, such as reading what
strangers sent, in processes of their own; ``runner`` validates and scores; ``servicer`` answers the calls, whose
``messages`` it checks and makes; ``service`` starts and stops them.
"""
