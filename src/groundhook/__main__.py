"""`python -m groundhook`: the command line."""

import os
import sys

# `python -m` looks for every module in the current folder first, but files of an app's folder must
# not become a part of the program: the same command runs again with Python's safe path. Up to here
# only modules are imported that Python itself loads for any `-m`.
if not sys.flags.safe_path:
    os.execv(sys.executable, [sys.executable, "-P", *sys.orig_argv[1:]])

from groundhook.host.cli.main import main

main()
