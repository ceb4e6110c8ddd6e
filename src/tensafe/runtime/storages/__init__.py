"""What is known of a storage and of the objects over it, without keeping any of them alive."""
