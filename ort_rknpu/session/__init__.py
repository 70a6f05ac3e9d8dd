"""The emulated execution provider and the session that runs on it."""
