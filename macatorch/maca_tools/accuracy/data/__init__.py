"""What a record holds: copies and summaries of tensors, their memory, and the files that they lie in."""
