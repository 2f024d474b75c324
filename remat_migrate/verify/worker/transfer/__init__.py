"""Moving values between worker processes."""
