"""What a model keeps per token and per sequence: cache components and how they grow.

`components` defines the data (a shape is a list of components, so any composition is data),
`families` holds one file per attention family that builds components from a config,
`readers` turns files (config.json, GGUF, hub ids) into shapes.
"""
