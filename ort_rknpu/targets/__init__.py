"""The registry of SoCs and other back ends, and their rules as data."""
