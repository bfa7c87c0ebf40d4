"""Runs the examples of a module that plain doctest skips: they need an extra.

`python tests/run_skipped_examples.py msa.integrations.jax` prints what failed, then
`N of M failed`; the exit code is 1 if N is not 0.
"""

from __future__ import annotations

import doctest
import importlib
import sys


def main(name: str) -> int:
    """Run all doctests of the module that have a skipped example."""
    runner = doctest.DocTestRunner(verbose=False)
    for test in doctest.DocTestFinder().find(importlib.import_module(name)):
        skipped = [e for e in test.examples if e.options.pop(doctest.SKIP, False)]
        if skipped:
            runner.run(test)
    failed, count = runner.failures, runner.tries
    sys.stdout.write(f"{failed} of {count} failed\n")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
