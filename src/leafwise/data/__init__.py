"""Tables: files, frames and arrays as variables with states, and codes for the cases; and back to files and frames."""
