"""The README's Python: each block runs by itself, in a folder that has nothing in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fresh_process import printed_by

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_each_block_runs_by_itself(tmp_path: Path, number: int) -> None:
    """With this package on the path, as `pip install -e .` puts it there."""
    installed = f"import sys; sys.path.append({str(ROOT)!r})\n"

    assert printed_by(installed + BLOCKS[number], tmp_path) == ""


def test_there_are_blocks() -> None:
    assert len(BLOCKS) == 2
