"""cucc: compiles CUDA C++ for the simulated device with the host's C++ compiler."""
