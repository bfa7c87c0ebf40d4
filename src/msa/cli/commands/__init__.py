"""One module per command: `EXAMPLE`, `configure(parser)` and `run(options)`."""
