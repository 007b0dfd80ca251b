"""Settings of Pillow that hold for the whole process, for as long as a picture is decoded."""

from __future__ import annotations

import logging
import threading
import warnings

from PIL import ImageFile

# Pillow logs before it raises; without a handler Python would print that line on stderr.
logging.getLogger("PIL").addHandler(logging.NullHandler())


class _StrictPillow:
    """Pillow without its warnings, and refusing truncated files even if the process allows them.

    Both are settings of the whole process. The first thread that decodes makes them and the last
    puts them back, so that none waits for another's picture.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._decoding = 0
        self._warnings = warnings.catch_warnings()
        self._allowed = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._decoding:
                self._warnings = warnings.catch_warnings()
                self._warnings.__enter__()
                warnings.simplefilter("ignore")
                self._allowed = ImageFile.LOAD_TRUNCATED_IMAGES
                ImageFile.LOAD_TRUNCATED_IMAGES = False
            self._decoding += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._decoding -= 1
            if not self._decoding:
                ImageFile.LOAD_TRUNCATED_IMAGES = self._allowed
                self._warnings.__exit__(None, None, None)


strict_pillow = _StrictPillow()
