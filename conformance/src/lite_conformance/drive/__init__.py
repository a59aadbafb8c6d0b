"""Running the backend under test by its contract, with every buffer watched."""
