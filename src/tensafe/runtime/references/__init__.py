"""Who holds the model's own tensors: live references, ties that break, optimizers left behind."""
