"""A language server over stdio: findings while one types, what is known of a tensor, fixes on request."""
