"""The n-gram metrics of the COCO caption evaluation, at parity and without Java."""
