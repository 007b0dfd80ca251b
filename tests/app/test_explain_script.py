"""The Explain page as a script, without a browser."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[2]


def run(**parameters: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    app.query_params.update(parameters)
    app.run()
    assert not app.exception, app.exception
    return app


def words(app: AppTest) -> str:
    return "\n".join(
        e.value for kind in ("markdown", "caption", "error", "info") for e in app.get(kind)
    )


def test_the_entry_script_imports_no_torch() -> None:
    tree = ast.parse((ROOT / "app.py").read_text())
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names <= {"pathlib", "streamlit", "interp.ui.kinds"}
    kinds = subprocess.run(
        [sys.executable, "-c", "import interp.ui.kinds, sys; print('torch' in sys.modules)"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert kinds.stdout.strip() == "False"


def test_the_first_screen_explains_a_sample_with_the_bundled_model() -> None:
    app = run()
    assert "which regions raise the score of *espresso (967)*" in words(app)
    assert "bundled weights" in words(app)
    assert "7 × 7 grid" in words(app)
    assert app.query_params == {}


def test_the_url_is_the_view() -> None:
    app = run(picture="chelsea", layer="features.3", target="281-282:prob", fit="letterbox")
    assert "tabby (281) − tiger cat (282), probability" in words(app)
    assert "`features.3`" in words(app)
    assert app.query_params["fit"] == "letterbox"


def test_a_class_may_be_named_in_the_url() -> None:
    assert "score of *tabby (281)*" in words(run(picture="chelsea", target="tabby"))


@pytest.mark.parametrize(
    ("parameters", "message", "remedy"),
    [
        ({"picture": "0" * 64}, "no longer kept here", "Take the sample «coffee»"),
        ({"model": "resnet5"}, "there is no model", "Take the bundled EfficientNet-Lite0"),
        ({"target": "1000"}, "index 1000", "Explain the top prediction"),
        ({"layer": "features.99"}, "no layer «features.99»", "Look at the recommended layer"),
        ({"layer": "classifier"}, "no grid", "Look at the recommended layer"),
        ({"method": "magic"}, "no method «magic»", "Explain the top prediction with Grad-CAM"),
        ({"fit": "squeeze"}, "no fit «squeeze»", "Fit the picture by cropping"),
        ({"picture": "coffee", "frame": "7"}, "frame", "Take the sample «coffee»"),
        ({"weights": "IMAGENET1K_V9"}, "has no weights named", "Take its own weights"),
    ],
)
def test_what_the_url_asks_in_vain_is_said_and_one_click_mends_it(
    parameters: dict[str, str], message: str, remedy: str
) -> None:
    app = run(**parameters)
    assert message.lower() in app.error[0].value.lower()
    button = next(button for button in app.button if button.label == remedy)
    button.click().run()
    assert not app.exception
    assert not app.error
    assert "7 × 7 grid" in words(app)


def test_weights_that_cannot_be_had_leave_two_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    app = run(model="squeezenet1_1")
    assert "squeezenet1_1" in app.error[0].value
    labels = [button.label for button in app.button]
    assert "Take the bundled EfficientNet-Lite0" in labels
    next(button for button in app.button if button.label == "Use it untrained").click().run()
    assert "untrained" in words(app)
    assert not app.error


def test_the_fit_is_changed_on_the_page() -> None:
    app = run()
    app.segmented_control(key="fit").set_value("stretch").run()
    assert app.query_params["fit"] == "stretch"
    assert not app.exception
