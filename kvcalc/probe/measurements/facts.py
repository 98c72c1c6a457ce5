"""F: facts, before anything is loaded; they are read again when the link has been seen at work."""

from kvcalc.probe.session import Session


def run(session: Session) -> None:
    """Ask each device once, so that one that cannot be asked shows at once."""
    for device in session.devices:
        session.beat(f"facts of device {device.index}")
        device.facts()
