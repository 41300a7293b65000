"""`python -m kubarium` is the program itself."""

import os
import sys

from .cluster import program

os.execv(program(), ["kubarium", *sys.argv[1:]])
