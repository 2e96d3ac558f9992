"""The calls of the ``ChallengeService``: every call is one transaction, or a stream around one."""
