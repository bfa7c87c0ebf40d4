"""The evaluator: modules executed on numpy arrays, one file per family of opcodes."""
