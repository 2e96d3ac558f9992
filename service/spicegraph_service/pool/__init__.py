"""Work of many requests gathered into batches for worker processes, in fair turns."""
