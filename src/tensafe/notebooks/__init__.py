"""Jupyter notebooks as programs: the cells in order, magics blanked; changed cells written back in place."""

from tensafe.notebooks.program import Program as Program
from tensafe.notebooks.reading import Notebook as Notebook
from tensafe.notebooks.reading import NotebookError as NotebookError
from tensafe.notebooks.reading import is_notebook as is_notebook
from tensafe.notebooks.reading import read as read
