"""What a multimodal checkpoint holds beside its language model, by `model_type` of the whole.

A tower module has ``TOWERS``: for each outer `model_type`, a function from the config and the width of
the language model to parts.
"""
