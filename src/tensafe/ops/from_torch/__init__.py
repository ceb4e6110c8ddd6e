"""Makes the stored table from the torch that is installed: `python -m tensafe.ops.from_torch`."""
