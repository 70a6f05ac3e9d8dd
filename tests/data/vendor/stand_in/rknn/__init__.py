"""Stands in for the vendor toolkit in tests."""
