"""``pycocoevalcap.cider``: its module has the class."""
