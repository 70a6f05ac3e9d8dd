"""Predicates per op family: a node in, every violated clause out."""
