"""What checks the wheels and the sources: linters, environments with the wheels, suites of tests, conformity runs."""
