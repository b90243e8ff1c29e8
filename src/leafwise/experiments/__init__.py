"""The paper's experiments, rerun: our numbers beside the published ones."""
