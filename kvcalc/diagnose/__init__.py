"""Is it the policy, the layout or too little compute: read from an engine's metrics, log and GPUs."""
