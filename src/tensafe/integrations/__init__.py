"""Callbacks for the trainers that people use; each module needs its library, and imports it when imported."""
