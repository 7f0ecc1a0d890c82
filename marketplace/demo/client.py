"""The REST calls of a buyer and an owner, as any program of theirs would make them."""

from pathlib import Path
from typing import Any, Self

import httpx


class Client:
    """One person's view of the site, through an API token."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.Client(
            base_url=f"{url}/api/", headers={"Authorization": f"Bearer {token}"}, timeout=60
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.close()

    def get(self, path: str) -> Any:
        return self._answer(self._http.get(path))

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._answer(self._http.post(path, json=body or {}))

    def put(self, path: str, body: Any) -> Any:
        return self._answer(self._http.put(path, json=body))

    def upload(self, path: str, *, file: Path, fields: dict[str, str]) -> Any:
        with file.open("rb") as content:
            return self._answer(self._http.post(path, data=fields, files={"file": (file.name, content)}))

    def download(self, path: str, *, to: Path) -> None:
        with self._http.stream("GET", path, follow_redirects=True) as response:
            response.raise_for_status()
            with to.open("wb") as file:
                for part in response.iter_bytes():
                    file.write(part)

    @staticmethod
    def _answer(response: httpx.Response) -> Any:
        if response.is_error:
            raise RuntimeError(f"{response.request.method} {response.request.url}: {response.text}")
        return response.json() if response.content else None
