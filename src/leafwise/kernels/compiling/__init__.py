"""numba: how functions are compiled, kept on disk and handed their arrays, and the instructions it lacks."""
