"""What lies in the files: heads, blocks, states and progress records."""
