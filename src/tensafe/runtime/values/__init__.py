"""Value semantics for saved tensors: `safe_inplace()` and `run --heal`."""
