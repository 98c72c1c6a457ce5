"""A small stand-in for the Hugging Face hub, for calculators that take nothing but a hub id.

It serves `config.json` and the header of a safetensors file that holds as many parameters as kvcalc
counts, as one tensor.  So sizes of the cache are what a calculator makes of the config; sizes of weights
are not compared.
"""

import json
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from kvcalc.parameters import count_parameters
from kvcalc.shapes.config import Config

OWNER = "local"


def serve(folder: Path) -> ThreadingHTTPServer:
    """Serve the configs of a folder on a free port of this machine, each as ``local/NAME``."""
    files = {file.stem: file.read_bytes() for file in folder.glob("*.json")}
    headers = {name: header(name, text) for name, text in files.items()}

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            name = next((name for name in files if f"{OWNER}/{name}/" in f"{path}/"), None)
            if name is None:
                self.send_error(404)
            elif path.endswith("/config.json"):
                self.answer(files[name])
            elif path.endswith(".safetensors"):
                self.answer(headers[name])
            elif "/tree/" in path:
                listed = ("config.json", "model.safetensors")
                self.answer(json.dumps([{"path": file, "type": "file"} for file in listed]).encode())
            elif path.startswith("/api/models/"):
                self.answer(json.dumps(about(name, headers[name])).encode())
            else:
                self.send_error(404)

        def answer(self, body: bytes) -> None:
            asked = self.headers.get("Range", "")
            status, part = 200, body
            if asked.startswith("bytes="):
                first, _, last = asked.removeprefix("bytes=").partition("-")
                status, part = 206, body[int(first) : int(last or len(body) - 1) + 1]
            self.send_response(status)
            self.send_header("Content-Length", str(len(part)))
            if status == 206:
                self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(body)}")
            self.end_headers()
            self.wfile.write(part)

        def log_message(self, *_: object) -> None:
            """Say nothing; the runs are what is recorded."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def total(name: str, text: bytes) -> int:
    """Return the parameters of a config."""
    return int(count_parameters(Config(json.loads(text), name)).total)


def header(name: str, text: bytes) -> bytes:
    """Return the head of a file of weights: one tensor of all parameters."""
    count = total(name, text)
    tensor = {"dtype": "BF16", "shape": [count], "data_offsets": [0, 2 * count]}
    body = json.dumps({"model.embed_tokens.weight": tensor}).encode()
    return struct.pack("<Q", len(body)) + body


def about(name: str, head: bytes) -> dict:
    """Return what the hub says of a model."""
    count = json.loads(head[8:])["model.embed_tokens.weight"]["shape"][0]
    files = [
        {"rfilename": "config.json", "size": 1000},
        {"rfilename": "model.safetensors", "size": 2 * count},
    ]
    return {
        "id": f"{OWNER}/{name}",
        "modelId": f"{OWNER}/{name}",
        "sha": "0" * 40,
        "siblings": files,
        "usedStorage": 2 * count,
        "safetensors": {"parameters": {"BF16": count}, "total": count},
    }
