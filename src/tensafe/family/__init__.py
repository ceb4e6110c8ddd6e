"""The processes of one run: how children are followed, and how what each of them found comes home."""
