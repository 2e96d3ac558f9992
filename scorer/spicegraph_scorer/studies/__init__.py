"""What scores are used for beside scoring: kinds of errors, agreement with people, bounds."""
