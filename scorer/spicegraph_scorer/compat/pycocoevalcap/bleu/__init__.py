"""``pycocoevalcap.bleu``: its module has the class."""
