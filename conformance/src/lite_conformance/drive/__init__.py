"""Finding the backend under test, and calling it through the contract with checks of every buffer."""
