"""The compiler's rewrites, one a file."""
