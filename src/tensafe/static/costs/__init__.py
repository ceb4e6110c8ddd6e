"""What is copied, kept or saved for nothing, and views that cannot be had: the rules of costs."""
