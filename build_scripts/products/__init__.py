"""The wheels: torch, the SDK, triton and the other companions; what one release has; the proof of each."""
