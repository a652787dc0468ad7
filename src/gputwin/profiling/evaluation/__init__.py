"""How good predictions are, on jobs the model has not seen."""
