"""``pycocoevalcap.spice``: its module has the class."""
