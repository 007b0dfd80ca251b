import inspect
import subprocess
import sys

import pytest

import interp

PUBLIC = {
    "load_model": ["name", "weights", "device"],
    "open_picture": ["source"],
    "predict": ["model", "picture", "k"],
    "explain": ["model", "picture", "method", "layers", "target", "fit", "parameters"],
    "capture": ["model", "picture_or_tensor", "layers", "target", "gradients"],
    "list_layers": ["model"],
    "HookSession": ["module", "ledger"],
    "audit": ["module"],
}


def run(program):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_take_what_the_design_says(name):
    parameters = inspect.signature(getattr(interp, name)).parameters
    assert list(parameters)[: len(PUBLIC[name])] == PUBLIC[name]


def test_defaults():
    defaults = {
        (name, p.name): p.default
        for name in PUBLIC
        for p in inspect.signature(getattr(interp, name)).parameters.values()
        if p.default is not p.empty
    }
    assert defaults["load_model", "weights"] == "default"
    assert defaults["load_model", "device"] == "auto"
    assert defaults["predict", "k"] == 5
    assert defaults["explain", "method"] == "grad-cam"
    assert defaults["explain", "layers"] is defaults["explain", "target"] is None
    assert defaults["explain", "fit"] == "crop"
    assert defaults["capture", "target"] is None
    assert defaults["capture", "gradients"] is True
    assert defaults["HookSession", "ledger"] is None


def test_all_names_can_be_had():
    assert set(PUBLIC) | {"InterpError"} <= set(interp.__all__)
    assert interp.__all__ == sorted(set(interp.__all__))
    for name in interp.__all__:
        public = getattr(interp, name)
        assert public.__name__ == name
        assert public.__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'grad_cam'"):
        _ = interp.grad_cam


def test_every_error_is_an_interp_error():
    from interp import errors

    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    assert len(kinds) >= 8
    assert all(issubclass(kind, interp.InterpError) for kind in kinds)


def test_the_attributes_of_results():
    from dataclasses import fields

    named = {
        "LayerInfo": "path kind calls shape layout parameters recommended reason",
        "Attribution": "map target method layers parameters predictions notes hooks seconds",
        "HookRecord": "id kind path purpose registered_at removed_at fires status",
        "Picture": "image sha256 notes",
        "LoadedModel": "module spec categories device",
        "Prediction": "index name probability logit",
    }
    for name, attributes in named.items():
        assert set(attributes.split()) <= {field.name for field in fields(getattr(interp, name))}
    for name in ("on_picture", "manifest", "save"):
        assert callable(getattr(interp.Attribution, name))


def test_the_core_leaves_streamlit_alone():
    program = """
import pkgutil, sys
from importlib import import_module
import interp

def walk(package):
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if found.name in ("interp.ui", "interp.__main__"):
            continue
        module = import_module(found.name)
        if found.ispkg:
            walk(module)

walk(interp)
loaded = [name for name in sys.modules if name.startswith("interp.")]
assert len(loaded) > 25, loaded
assert "interp.attribution.cam" in loaded and "interp.hooks.session" in loaded
print(sorted(n for n in sys.modules if n.partition(".")[0] == "streamlit")[:3])
print(sorted(n for n in loaded if n.startswith("interp.ui")))
"""
    done = run(program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["[]", "[]"]


def test_the_package_alone_loads_no_torch():
    done = run(
        "import sys, interp; interp.InterpError; "
        "print([n for n in ('torch', 'torchvision', 'numpy', 'streamlit') if n in sys.modules])"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
