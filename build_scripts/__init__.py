"""The wheel factory: rebuilds upstream's CUDA wheels for the MXMACA device family.

``python -m build_scripts --help`` lists the commands. Each layer imports from those above it in this list only:

- here: what all share (the table of releases, the cache, progress, errors, child processes). ``tools.py`` stands alone:
  the Makefile runs it before there is an environment to run anything else in.
- ``factory``: what wheels are made with. One file a noun of the trade.
- ``products``: the wheels: a file for each kind, what one release has of them, and the proof.
- ``container``: the image. ``quality``: linters, test environments, suites, conformity.
- ``commands``: one file a command.
"""
