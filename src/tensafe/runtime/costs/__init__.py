"""Bytes that are copied, stored or kept alive for nothing."""
