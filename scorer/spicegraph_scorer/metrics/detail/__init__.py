"""The metric ``detail``: how much of a description holds, and how much of its references it says."""
