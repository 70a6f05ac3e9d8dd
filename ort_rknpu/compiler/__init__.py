"""What the vendor's compiler does to a graph: rewrites, then placement."""
