"""Serves the planner on this machine until it is stopped."""

import os
import socket
import webbrowser
from collections.abc import Callable
from typing import TYPE_CHECKING

from kvcalc.errors import SettingsError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

HOST, PORT = "127.0.0.1", 2718
"""Where the planner listens where nothing else is said: this machine alone."""

FILE = "KVCALC_APP_FILE"
"""Environment variable by which the notebook learns of the scenario file."""


def check_installed() -> None:
    """Refuse to start where marimo is missing.

    Raises
    ------
    SettingsError
        If the extra is not installed.
    """
    from importlib.util import find_spec

    if find_spec("marimo") is None:
        raise SettingsError("app: the planner needs marimo: pip install 'kvcalc[app]'")


def serve(file: str | None, host: str, port: int, browser: bool, told: Callable[[str], object]) -> None:
    """Answer the planner's page until it is interrupted; `told` hears where it can be opened.

    Raises
    ------
    SettingsError
        If marimo is missing, the file has no answer, or the port cannot be listened on.
    """
    check_installed()
    import uvicorn

    from kvcalc.api import plan_calls
    from kvcalc.app.asking import start

    plan_calls(start(file))  # a question without an answer is refused here, in one line
    if file is not None:
        os.environ[FILE] = os.path.abspath(file) if os.path.exists(file) else file
    listening = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}"
    told(address)
    if browser:
        webbrowser.open(address)
    server = uvicorn.Server(uvicorn.Config(_application(host), log_level="error"))
    server.run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(place[:2], family=family)
    except OSError as error:
        known = error.errno is not None and error.errno > 0
        reason = (os.strerror(error.errno or 0) if known else error.strerror or str(error)).lower()
        raise SettingsError(f"app: cannot listen on {host} port {port}: {reason}") from None


def _application(host: str) -> "ASGIApp":
    """Return the notebook as an application that answers to its own names alone."""
    from pathlib import Path

    import marimo
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    notebook = Path(__file__).with_name("planner.py")
    app = marimo.create_asgi_app(quiet=True).with_app(path="", root=str(notebook)).build()
    # Another page that a browser has open must not reach the planner under a name of its own.
    allowed = ["*"] if host in ("0.0.0.0", "::") else [host, "127.0.0.1", "localhost", "[::1]"]
    return TrustedHostMiddleware(app, allowed_hosts=allowed)
