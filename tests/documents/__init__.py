"""What the README and the pages of docs/ show is run, and what stands under it is what comes out."""
