"""What surrounds the static engine: settings, files, the cache, the baseline, comments that allow."""
