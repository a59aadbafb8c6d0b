"""The cases of every level, and the tensors, graphs and networks that they consist of."""
