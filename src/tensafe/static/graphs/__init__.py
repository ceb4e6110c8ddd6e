"""What autograd refuses, keeps and lets flow: in-place writes, arrays, copies, second backwards, leaks."""
