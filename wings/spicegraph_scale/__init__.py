"""What a fleet of machines needs: scoring on a Ray cluster, stores in Redis, backups. A wing."""
