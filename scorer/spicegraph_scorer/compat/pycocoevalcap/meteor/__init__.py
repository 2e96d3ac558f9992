"""``pycocoevalcap.meteor``: its module has the class."""
