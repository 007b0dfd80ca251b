"""Runs code as a reader would who copied it: in a process and a folder that know nothing of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def run_fresh(source: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Save a program in an empty folder and run it there, apart from every path of this one."""
    (folder / "copied.py").write_text(source, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-I", "-X", "utf8", "copied.py"],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )


def printed_by(source: str, folder: Path) -> str:
    """What a program prints that has to end well, without a word on stderr."""
    done = run_fresh(source, folder)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout
