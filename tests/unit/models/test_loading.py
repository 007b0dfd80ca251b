import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn
from torchvision.models import get_model, get_model_weights
from torchvision.transforms import Compose, ToTensor

from interp.errors import InterpError, ModelError, WeightsError
from interp.geometry import Preset
from interp.models.catalog import build, get_spec
from interp.models.loading import load_model
from interp.picture import open_picture

SMALL = Preset(32, 36, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25), "nearest")


@pytest.fixture
def checkpoints(monkeypatch, tmp_path):
    """An empty folder where torch.hub looks for checkpoints."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def picture(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8)
    path = tmp_path / "noise.png"
    Image.fromarray(pixels).save(path)
    return open_picture(path)


def logits(model, picture):
    with torch.no_grad():
        return model.module(model.prepare(picture))[0]


def top(model, picture):
    return model.categories[int(logits(model, picture).argmax())]


def all_hooks(module):
    return [
        hook
        for part in module.modules()
        for name, hooks in vars(part).items()
        if name.endswith("_hooks") and isinstance(hooks, dict)
        for hook in hooks.values()
    ]


def test_bundled_model(coffee):
    model = load_model("efficientnet_lite0", device="cpu")
    assert (model.weights, model.source, model.trained) == ("BUNDLED", "bundled", True)
    assert model.spec is get_spec("efficientnet_lite0")
    assert len(model.categories) == 1000
    assert top(model, open_picture(coffee)) == "espresso"
    assert logits(model, open_picture(coffee)).softmax(0).max() >= 0.95
    assert not any(part.training for part in model.module.modules())
    assert not any(p.requires_grad for p in model.module.parameters())
    assert not all_hooks(model.module)


def test_no_name_is_the_bundled_model():
    assert load_model(device="cpu").spec.name == "efficientnet_lite0"


def test_real_checkpoint_on_disk(squeezenet_home, coffee):
    for weights in ("default", "IMAGENET1K_V1", "imagenet1k_v1"):
        model = load_model("squeezenet1_0", weights, device="cpu")
        assert (model.weights, model.source) == ("IMAGENET1K_V1", "on disk")
    assert top(model, open_picture(coffee)) == "espresso"
    path = squeezenet_home / "hub" / "checkpoints" / "squeezenet1_0-b66bff10.pth"
    file = load_model("squeezenet1_0", path, device="cpu")
    assert (file.weights, file.source) == ("file:squeezenet1_0-b66bff10.pth", "file")
    assert torch.equal(logits(file, open_picture(coffee)), logits(model, open_picture(coffee)))


@pytest.mark.parametrize("name", ["googlenet", "inception_v3", "densenet121", "mnasnet0_5"])
def test_same_logits_as_torchvisions_own_loading(name, checkpoints):
    """Both read one file of random weights that bears the published name."""
    entry = get_spec(name).default
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    torch.save(get_model(name, **options).state_dict(), checkpoints / entry.file_name)
    theirs = get_model(name, weights=get_model_weights(name)[entry.name]).eval()
    model = load_model(name, device="cpu")
    assert model.source == "on disk"
    assert list(model.module.state_dict()) == list(theirs.state_dict())
    pixels = torch.randn(1, 3, 96, 96)
    with torch.no_grad():
        torch.testing.assert_close(model.module(pixels), theirs(pixels))


def test_default_never_falls_back_to_random(checkpoints, monkeypatch):
    monkeypatch.setattr("interp.models.weights.urlopen", lambda *_, **__: no_network())
    begun = time.monotonic()
    with pytest.raises(WeightsError) as error:
        load_model("resnet50")
    assert time.monotonic() - begun < 20
    message = str(error.value)
    assert "resnet50-11ad3fa6.pth" in message
    assert str(checkpoints) in message
    assert "\n" not in message
    assert list(checkpoints.iterdir()) == []


def no_network():
    raise OSError("Network is unreachable")


def test_a_download_says_so_and_shows_progress(checkpoints, monkeypatch):
    def fetch(spec, entry, progress):
        if progress is not None:
            progress(3, 10)
        path = checkpoints / entry.file_name
        torch.save(build(spec, None).state_dict(), path)
        return path

    monkeypatch.setattr("interp.models.loading.fetch", fetch)
    steps = []
    model = load_model(
        "shufflenet_v2_x0_5", device="cpu", progress=lambda done, total: steps.append((done, total))
    )
    assert (model.source, model.weights) == ("downloaded", "IMAGENET1K_V1")
    assert steps == [(3, 10)]
    assert load_model("shufflenet_v2_x0_5", device="cpu").source == "on disk"


def test_a_broken_file_on_disk_is_named(checkpoints):
    path = checkpoints / get_spec("resnet18").default.file_name
    path.write_bytes(b"half")
    with pytest.raises(WeightsError, match=f"{path.name}.*delete the file"):
        load_model("resnet18")


def test_untrained(picture):
    state = torch.get_rng_state()
    first = load_model("squeezenet1_1", "none", device="cpu")
    second = load_model("squeezenet1_1", "none", device="cpu")
    assert torch.equal(torch.get_rng_state(), state)
    assert (first.weights, first.source, first.trained) == ("none", "untrained", False)
    assert torch.equal(logits(first, picture), logits(second, picture))
    few = load_model("squeezenet1_1", "none", device="cpu", categories=["cat", "dog"])
    assert few.categories == ("cat", "dog")
    assert logits(few, picture).shape == (2,)


@pytest.mark.parametrize("name", ["resnet18", "squeezenet1_1"])
def test_fine_tuned_head(name, tmp_path, picture):
    tuned = get_model(name, num_classes=3).eval()
    path = tmp_path / "mine.pth"
    torch.save({"model": {f"module.{k}": v for k, v in tuned.state_dict().items()}}, path)
    model = load_model(name, str(path), device="cpu")
    assert (model.weights, model.source) == ("file:mine.pth", "file")
    assert model.categories == ("class 0", "class 1", "class 2")
    with torch.no_grad():
        torch.testing.assert_close(logits(model, picture), tuned(model.prepare(picture))[0])
    named = load_model(name, path, device="cpu", categories=["ant", "bee", "fly"], transforms=SMALL)
    assert named.categories == ("ant", "bee", "fly")
    assert named.prepare(picture).shape == (1, 3, 32, 32)
    with pytest.raises(WeightsError, match=r"tells 3 classes apart, but 2 were named"):
        load_model(name, path, categories=["ant", "bee"])


def test_fine_tuned_safetensors(tmp_path):
    path = tmp_path / "mine.safetensors"
    save_file(build(get_spec("mnasnet0_5"), None, 4).state_dict(), path)
    assert len(load_model("mnasnet0_5", path, device="cpu").categories) == 4


def test_fine_tuned_inception_keeps_its_old_auxiliary_head(tmp_path):
    net = build(get_spec("inception_v3"), None)
    net.fc = nn.Linear(2048, 5)
    torch.save(net.state_dict(), tmp_path / "mine.pth")
    model = load_model("inception_v3", tmp_path / "mine.pth", device="cpu")
    assert len(model.categories) == 5
    assert model.module.AuxLogits is None
    assert model.module.transform_input


def test_a_file_of_another_model(tmp_path):
    torch.save(get_model("squeezenet1_1").state_dict(), tmp_path / "mine.pth")
    with pytest.raises(WeightsError, match=r"mine.pth does not fit ResNet: 102 missing"):
        load_model("resnet18", tmp_path / "mine.pth", categories=["cat", "dog"])


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"name": "resnet5"}, ModelError, "did you mean"),
        ({"name": "resnet18", "weights": "IMAGENET1K_V9"}, WeightsError, "IMAGENET1K_V1 or a file"),
        ({"name": "resnet18", "weights": ""}, WeightsError, "IMAGENET1K_V1 or a file"),
        ({"name": "resnet18", "weights": "nowhere.pth"}, WeightsError, "no weights file nowhere"),
        ({"name": "vgg16", "weights": "IMAGENET1K_FEATURES"}, WeightsError, "no classifier"),
        ({"categories": ["cat"]}, ModelError, "categories and transforms of their own"),
        ({"transforms": SMALL}, ModelError, "categories and transforms of their own"),
        ({"device": "tpu"}, ModelError, "no device 'tpu'"),
        ({"name": "resnet18", "module": nn.ReLU()}, ModelError, "a module has its own weights"),
        ({"weights": "none", "module": nn.ReLU()}, ModelError, "a module has its own weights"),
        ({"module": nn.ReLU(), "transforms": Compose([ToTensor()])}, ModelError, "transforms"),
        ({"module": nn.Flatten(), "categories": ["cat"]}, ModelError, "150528 outputs, but 1"),
    ],
)
def test_refusals(arguments, kind, message):
    with pytest.raises(InterpError, match=message) as error:
        load_model(**arguments)
    assert type(error.value) is kind
    assert "\n" not in str(error.value)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(2).mean(2))


def test_any_module(picture):
    net = Net().train()
    net.register_forward_hook(lambda module, args, output: output + 1)
    model = load_model(module=net, categories=["cat", "dog"], transforms=SMALL)
    assert (model.weights, model.source, model.trained) == ("module", "module", True)
    assert model.categories == ("cat", "dog")
    assert model.preset is SMALL
    assert (model.spec.name, model.spec.default.parameters) == ("Net", 3 * 4 * 9 + 4 + 8 + 2)
    assert model.spec.default.preset is SMALL
    assert net.training
    assert all(p.requires_grad for p in net.parameters())
    assert len(all_hooks(model.module)) == 1  # it is part of the network
    assert not any(p.requires_grad for p in model.module.parameters())
    assert logits(model, picture).shape == (2,)
    with torch.no_grad():
        net.fc.bias += 1  # shared memory: the loaded net follows
    assert torch.equal(model.module.fc.bias, net.fc.bias)


def test_module_without_names_and_transforms(picture):
    model = load_model(module=Net())
    assert model.categories == ("class 0", "class 1")
    preset = get_model_weights("resnet18")["IMAGENET1K_V1"].transforms()
    assert model.preset == Preset.from_torchvision(preset)
    assert load_model(module=Net(), transforms=preset).preset == model.preset


def test_half_precision_module(picture):
    model = load_model(module=Net().bfloat16(), transforms=SMALL)
    assert model.prepare(picture).dtype == torch.bfloat16
    assert logits(model, picture).dtype == torch.bfloat16


def test_prepare_and_geometry(picture):
    model = load_model("squeezenet1_1", "none", device="cpu")
    expected = get_model_weights("squeezenet1_1")["DEFAULT"].transforms()(picture.image)
    assert torch.equal(model.prepare(picture), expected[None])
    assert model.geometry(picture).picture_size == (70, 50)
    assert model.geometry(picture, "stretch").seen == (0, 0, 70, 50)
    assert model.prepare(picture, "letterbox")[0, :, 0].abs().max() == 0


def test_layers_are_read_once():
    model = load_model("squeezenet1_1", "none", device="cpu")
    assert model.layers is model.layers
    assert any(layer.path == "features.12" for layer in model.layers)


def test_convolution_nets_are_channels_last_on_the_cpu():
    model = load_model("squeezenet1_1", "none", device="cpu")
    weight = model.module.features[0].weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    net = Net()
    assert load_model(module=net).module.conv.weight.is_contiguous()


def test_loaded_in_inference_mode_it_can_be_differentiated(picture):
    with torch.inference_mode():
        model = load_model("efficientnet_lite0", device="cpu")
        pixels = model.prepare(picture)
    assert not any(t.is_inference() for t in [*model.module.state_dict().values(), pixels])
    pixels.requires_grad_()
    model.module(pixels)[0, 0].backward()
    assert pixels.grad.abs().sum() > 0


def test_nothing_is_printed_and_no_random_number_drawn(capfd):
    state = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, weights in [("efficientnet_lite0", "default"), ("googlenet", "none")]:
            load_model(name, weights, device="cpu")
    assert capfd.readouterr() == ("", "")
    assert torch.equal(torch.get_rng_state(), state)


def test_threads_build_at_once_without_moving_the_random_state():
    state = torch.get_rng_state()
    models = []

    def load():
        models.append(load_model("mnasnet0_5", "none", device="cpu"))

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.equal(torch.get_rng_state(), state)
    first, *others = [model.module.state_dict() for model in models]
    assert len(others) == 2
    assert all(torch.equal(first[name], other[name]) for other in others for name in first)


def test_a_file_in_this_folder_needs_no_suffix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save(build(get_spec("mnasnet0_5"), None).state_dict(), Path("epoch7"))
    model = load_model("mnasnet0_5", "epoch7", device="cpu")
    assert model.weights == "file:epoch7"
    assert model.categories == get_spec("mnasnet0_5").default.categories
