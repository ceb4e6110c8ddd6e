"""The text of a notebook, from the sources of its cells."""

from __future__ import annotations

import json
from typing import Any

MARKDOWN = {"cell_type": "markdown", "metadata": {}, "source": ["x[m].zero_()"]}


def notebook(*cells: object, **options: Any) -> str:
    """The text of a notebook; a list or a string is a code cell, a dict any cell."""
    whole = [
        cell
        if isinstance(cell, dict)
        else {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": cell}
        for cell in cells
    ]
    return json.dumps({"cells": whole, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, **options)
