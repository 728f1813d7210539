"""`python -m groundhook`: the command line."""

from groundhook.host.cli.main import main

main()
