"""The container image with the preinstalled stack: what ``python -m build_scripts image`` does, a noun a file."""
