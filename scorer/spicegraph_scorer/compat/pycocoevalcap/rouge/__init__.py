"""``pycocoevalcap.rouge``: its module has the class."""
