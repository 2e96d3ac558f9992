"""The contract of rewards for training, version 1."""
