"""`python -m msa` is the command line."""

from msa.cli import main

raise SystemExit(main())
