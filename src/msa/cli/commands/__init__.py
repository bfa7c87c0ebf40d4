"""One module per command: `configure(parser)`, `run(options)` and what help shows.

`EXAMPLES` are commands that run as written in a clone of the project; `EXIT_ONE` says
when the command ends with 1, if it has a negative answer.
"""
