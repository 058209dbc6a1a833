"""Django's backend of this name."""
