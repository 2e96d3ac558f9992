"""What metrics are made of: items, statistics, scores, sums and tests, without any one metric."""
