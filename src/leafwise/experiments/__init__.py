"""The paper's experiments, repeated: our results beside the published ones."""
