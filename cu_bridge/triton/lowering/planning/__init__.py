"""What is decided of a function before its text is written: branches, the order of dimensions, tiles that are kept."""
