"""How the weights of each family of models are laid out; one file a family.

A family module has ``BUILDERS``: for each `model_type` of the language model, a function that turns
a `Config` into `Parameters`.
"""
