"""What this machine's links really deliver: measured, checked, and written as evidence and a profile.

`backends` say how bytes are moved and timed on one kind of device, `measurements` what is measured on any
of them, `statistics` and `fit` what the times mean, `flags` and `verdicts` whether to believe them.  Needs
Python and numpy, and torch where there is a GPU; nothing here imports torch before a device is asked for.
"""
