"""Models: architectures, and which of their variables never leave the client."""
