"""Submissions from their arrival to their scores."""
