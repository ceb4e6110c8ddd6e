"""Code on which tensafe spoke at first sight though it is correct, each with the fault beside it."""
