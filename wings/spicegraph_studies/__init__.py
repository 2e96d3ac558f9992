"""Studies of metrics: agreement with people, and how high and how low scores can go."""
