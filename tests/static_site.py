"""Serves folders of this machine to a browser under the policy that the site's own pages have: no inline script."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

STRICT_POLICY = "default-src 'self'"


@contextmanager
def static_site(folders: Mapping[str, Path], *, policy: str = STRICT_POLICY) -> Iterator[str]:
    """The address of a server of `folders`, by the path they appear under, like '/static/'."""
    handler = partial(_Handler, folders=folders, policy=policy)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *args: object, folders: Mapping[str, Path], policy: str) -> None:
        self._folders = folders
        self._policy = policy
        super().__init__(*args)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        path = unquote(urlsplit(path).path)
        for prefix, folder in self._folders.items():
            target = (folder / path.removeprefix(prefix)).resolve()
            if path.startswith(prefix) and target.is_relative_to(folder.resolve()):
                return str(target)
        return "/nowhere"

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", self._policy)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_args: object) -> None:
        pass
