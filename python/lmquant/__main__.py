"""python -m lmquant: which versions are these?"""

import lmquant
from lmquant._library import name

print("module", lmquant.__version__)
print("library %s, %s" % (lmquant.library_version(), name))
print("instruction set", lmquant.instruction_set())
