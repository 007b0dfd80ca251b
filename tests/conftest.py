"""What all tests share. Heavy packages are imported by the fixtures that need them, so that
collecting stays fast."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from interp import LoadedModel

ROOT = Path(__file__).resolve().parents[1]
SQUEEZENET_HOME = ROOT.parent / "shared" / "torch_home"
SQUEEZENET_FILE = SQUEEZENET_HOME / "hub" / "checkpoints" / "squeezenet1_0-b66bff10.pth"

# A developer's own checkpoints must not decide what a test sees, here or in a process it starts.
_torch_home = TemporaryDirectory(prefix="hookscope-tests-")
os.environ["TORCH_HOME"] = _torch_home.name
os.environ.setdefault("OMP_NUM_THREADS", "2")

settings.register_profile("hookscope", derandomize=True, deadline=None)
settings.load_profile("hookscope")


def pytest_unconfigure() -> None:
    _torch_home.cleanup()


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Every test starts from the same random state."""
    random.seed(0)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(0)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.fixture(scope="session")
def picture_path() -> Callable[[str], Path]:
    """Path of one of scikit-image's installed pictures: `picture_path("rocket")`."""
    spec = importlib.util.find_spec("skimage")
    assert spec is not None
    assert spec.origin is not None
    data = Path(spec.origin).parent / "data"

    def path(name: str) -> Path:
        (found,) = data.glob(f"{name}.*")
        return found

    return path


@pytest.fixture(scope="session")
def chelsea(picture_path: Callable[[str], Path]) -> Path:
    """A cat, 451 × 300."""
    return picture_path("chelsea")


@pytest.fixture(scope="session")
def coffee(picture_path: Callable[[str], Path]) -> Path:
    """A cup of espresso, 600 × 400."""
    return picture_path("coffee")


@pytest.fixture(scope="session")
def camera(picture_path: Callable[[str], Path]) -> Path:
    """A man with a camera on a tripod, greyscale, 512 × 512."""
    return picture_path("camera")


@pytest.fixture(scope="session")
def motorcycle(picture_path: Callable[[str], Path]) -> Path:
    """A motorcycle, 741 × 500."""
    return picture_path("motorcycle_left")


@pytest.fixture(scope="session")
def bundled() -> LoadedModel:
    """EfficientNet-Lite0 with its bundled weights, on the CPU."""
    from interp import load_model

    return load_model("efficientnet_lite0", device="cpu")


@pytest.fixture
def squeezenet_home(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `TORCH_HOME` that holds a checkpoint for `squeezenet1_0`, set for this test."""
    if not SQUEEZENET_FILE.is_file():
        pytest.skip("no checkpoint at ../shared/torch_home for squeezenet1_0")
    monkeypatch.setenv("TORCH_HOME", str(SQUEEZENET_HOME))
    return SQUEEZENET_HOME
