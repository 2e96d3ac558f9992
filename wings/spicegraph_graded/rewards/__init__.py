"""Rewards for training, what guards them, and their service and client."""
