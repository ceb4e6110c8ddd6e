"""Who shares this tensor's memory, who wrote to it, and a copy of it at the speed of memory."""

__version__ = "0.1.0"
