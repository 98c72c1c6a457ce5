"""One file per attention family; each says which `model_type`s it builds, and how.

A family module has ``MODEL_TYPES`` (the `model_type` values of the language model it builds) and
``build(config) -> ModelShape``.  Adding a family is adding a file here: modules are found by name.
Families share component builders by importing them from the file of the kind (`attention`, ...).
"""
