"""Descriptions of many sentences: how much of one holds, and how much of its references it says."""
