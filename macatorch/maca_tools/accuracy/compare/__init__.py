"""After it: two records compared, the report of that, and the search for one operator."""
