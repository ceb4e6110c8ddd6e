"""Memory that other threads and processes read: workers, queues, saves in the background."""
