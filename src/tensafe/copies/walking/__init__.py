"""The walk that makes a deep copy: which function copies which kind of object, and what one call knows."""
