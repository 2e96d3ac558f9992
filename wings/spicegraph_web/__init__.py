"""Pages for this machine's user alone: results of any size to look at, and a box to try captions in. A wing."""
