"""Tools of the MXMACA distribution that also work beside a stock PyTorch: copy this folder next to a script."""
