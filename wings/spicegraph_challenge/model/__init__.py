"""Users, challenges and leaderboards in the database."""
