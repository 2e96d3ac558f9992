"""Evaluation platforms and other programs that call a metric: their call shapes around the same scores. A wing."""
