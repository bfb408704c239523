"""What phases.py knows of a kernel before it goes through its statements."""
