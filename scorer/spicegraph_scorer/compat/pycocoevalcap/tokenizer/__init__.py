"""``pycocoevalcap.tokenizer``: its module has the class."""
