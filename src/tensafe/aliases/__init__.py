"""Live objects: who shares bytes with whom, what is kept alive, what may be written in place."""
