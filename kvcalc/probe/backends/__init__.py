"""How bytes are moved and timed on each kind of device."""
