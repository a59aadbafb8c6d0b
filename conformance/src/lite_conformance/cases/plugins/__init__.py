"""Cases of installed plugins: their operators for every backend, and checks of one package."""
