"""Settings, files, the cache, the baseline, and comments that allow."""
