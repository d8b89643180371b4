"""Jobs that compute embeddings of raw data with published networks."""
