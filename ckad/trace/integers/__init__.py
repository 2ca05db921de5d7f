"""What is known of traced integers."""
