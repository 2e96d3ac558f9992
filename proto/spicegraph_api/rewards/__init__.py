"""The contract of rewards for training."""
