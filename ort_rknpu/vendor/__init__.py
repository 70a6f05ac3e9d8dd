"""Runs the vendor's toolkit in another interpreter, as a black box."""
