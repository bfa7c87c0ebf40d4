"""Bridges to other programs; each needs its extra (`pip install 'msa[jax]'`)."""
