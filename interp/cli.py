"""What the commands of `python -m interp` do and print."""

import argparse
import itertools
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interp.attribution import Attribution, explain, get_method, list_methods
from interp.attribution.layer_calls import layer_calls
from interp.errors import InterpError
from interp.export import json_bytes, safe_stem, save
from interp.models.catalog import DEFAULT_MODEL, ModelSpec, WeightsEntry, catalog
from interp.models.layers import LayerInfo
from interp.models.loading import LoadedModel, load_model
from interp.models.weights import availability
from interp.picture import open_picture
from interp.targets import parse_target


@dataclass(frozen=True)
class _Job:
    """One picture: its path, how lines call it, and the stem of its files."""

    path: str
    label: str
    stem: str


class _Bar:
    """A progress bar on the last line of a terminal; nothing where stderr is something else."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()

    def draw(self, done: int, total: int, text: str) -> None:
        if self.shown:
            filled = min(20, 20 * done // total) if total else 0
            line = f"[{'#' * filled}{'.' * (20 - filled)}] {text}"
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{line[:width]}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def explain_pictures(arguments: argparse.Namespace) -> int:
    """`explain`: a heatmap for each picture; a picture that fails does not stop the others.

    Returns
    -------
    int
        0, or 1 where a picture failed.

    Raises
    ------
    InterpError
        An argument is wrong or the weights cannot be had; no picture has been opened then.
    """
    method = get_method(arguments.method)
    model = load(arguments.model, arguments.weights, arguments.device)
    layer_calls(model, arguments.layer)
    parse_target(arguments.target, model.categories)
    folder = folder_at(arguments.out)
    endings = (method.name,) if model.trained else ("untrained", method.name)
    jobs = _jobs(arguments.pictures, endings)

    manifests: list[Any] = []
    failures = 0
    bar = _Bar()
    try:
        for done, job in enumerate(jobs):
            if len(jobs) > 1:
                bar.draw(done, len(jobs), f"{done + 1} of {len(jobs)}  {job.label}")
            try:
                attribution, png = _explain(model, job, folder, arguments)
            except InterpError as error:
                bar.clear()
                # Many of these texts begin with the picture's name, which the label says already.
                text = str(error).removeprefix(f"{Path(job.path).name} ")
                print(f"{job.label}: {text}", file=sys.stderr)
                failures += 1
                continue
            bar.clear()
            if arguments.json:
                manifests.append(json.loads(json_bytes(attribution)))
            else:
                print(_line(job.label, attribution, method.title, png), flush=True)
    finally:
        bar.clear()
        if arguments.json:
            print(json.dumps(manifests, indent=2))
    return 1 if failures else 0


def print_models(only_available: bool) -> int:
    """`models`: a row for each set of weights of each model."""
    rows = [("model", "weights", "title", "M param.", "top-1", "availability")]
    for spec in catalog().values():
        for entry in spec.entries:
            if only_available and availability(spec, entry).path is None:
                continue
            accuracy = "–" if entry.accuracy is None else f"{entry.accuracy:.1f}"
            size = f"{entry.parameters / 1e6:.1f}"
            rows.append((spec.name, entry.name, spec.title, size, accuracy, _where(spec, entry)))
    print_table(rows, right=(3, 4))
    return 0


def print_layers(name: str, weights: str | None) -> int:
    """`layers`: a row for each layer, and below it why it is recommended or never ran.

    Without `weights` nothing is downloaded: shapes do not depend on them.
    """
    if weights is None:
        model = load_model(name, "default" if name == DEFAULT_MODEL else "none", "cpu")
    else:
        model = load(name, weights, "cpu")
    rows: list[tuple[str, ...]] = [("  layer", "calls", "shape", "layout", "class")]
    rows += map(_layer_row, model.layers)
    print_table(rows, right=(1,), below=["", *(info.reason for info in model.layers)])
    return 0


def print_methods() -> int:
    """`methods`: name and title, what it shows, and the paper."""
    methods = list_methods()
    width = max(len(method.name) for method in methods) + 2
    for method in methods:
        summary = method.summary.format(target="the target")
        print(f"{method.name:{width}}{method.title}: {summary}.")
        print(f"{'':{width}}{method.paper}")
    return 0


def load(name: str | None, weights: str, device: str) -> LoadedModel:
    """Load a model with a bar for what is downloaded, and say on stderr what was loaded."""
    bar = _Bar()

    def show(done: int, total: int) -> None:
        size = f" of {total / 2**20:.1f}" if total else ""
        bar.draw(done, total, f"downloading weights, {done / 2**20:.1f}{size} MB")

    try:
        model = load_model(name, weights, device, progress=show)
    finally:
        bar.clear()
    words = f"weights {model.weights}, {model.source}"
    if model.source == "file":
        words = f"weights {model.weights}"
    elif not model.trained:
        words = "untrained: the weights are random"
    print(f"{model.spec.title}, {words}", file=sys.stderr)
    return model


def folder_at(out: str) -> Path:
    """The folder that --out names; it is made where it is missing.

    Raises
    ------
    InterpError
        If it cannot be made or written to.
    """
    if not out:
        raise InterpError("--out is empty: name a folder, or . for the present one")
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InterpError(
            f"--out {out} cannot be made ({error.strerror}): choose a folder you can write to"
        ) from error
    if not os.access(folder, os.W_OK):
        raise InterpError(f"--out {out} is read-only: choose a folder you can write to")
    return folder


def _jobs(pictures: Sequence[str], endings: Sequence[str]) -> list[_Job]:
    names = Counter(Path(path).name for path in pictures)
    taken: set[str] = set()
    jobs = []
    for path in pictures:
        name = Path(path).name
        # Folded, since some file systems take A.png and a.png for one.
        stem = next(s for s in _stems(Path(path).stem, endings) if s.casefold() not in taken)
        taken.add(stem.casefold())
        label = name if name and names[name] == 1 else path
        jobs.append(_Job(path, printable(label) or "''", stem))
    return jobs


def _stems(stem: str, endings: Sequence[str]) -> Iterator[str]:
    yield safe_stem(stem, *endings)
    for number in itertools.count(2):
        yield safe_stem(f"{stem}-{number}", *endings)


def _explain(
    model: LoadedModel, job: _Job, folder: Path, arguments: argparse.Namespace
) -> tuple[Attribution, Path]:
    attribution = explain(
        model,
        open_picture(job.path),
        arguments.method,
        arguments.layer,
        arguments.target,
        arguments.fit,
    )
    _, png, _ = save(attribution, folder, job.stem)
    return attribution, png


def _line(label: str, attribution: Attribution, title: str, png: Path) -> str:
    top = attribution.predictions[0]
    target = attribution.target
    plain = (target.index, target.against, target.scale) == (top.index, None, "logit")
    aim = "" if plain else f" for {target.label}"
    where = f"{' + '.join(attribution.layers)} ({' × '.join(map(str, attribution.map.shape))})"
    line = (
        f"{label}  {top.name} {100 * top.probability:.1f} %  ·  {title}{aim} at {where}"
        f"  →  {printable(str(png))}"
    )
    return "\n".join([line, *(f"    {note}" for note in attribution.notes)])


def printable(text: str) -> str:
    """Text that moves no cursor and ends no line of a terminal."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def _where(spec: ModelSpec, entry: WeightsEntry) -> str:
    state = availability(spec, entry)
    if state.kind == "download":
        return f"download {state.megabytes:.0f} MB"
    if state.kind == "unavailable":
        why = state.why.removeprefix(f"{spec.title} {entry.name} ")  # the row has said so
        return f"unavailable: {why}"
    return state.kind


def _layer_row(info: LayerInfo) -> tuple[str, ...]:
    star = "*" if info.recommended else " "
    shape = "–" if info.shape is None else "×".join(map(str, info.shape))
    layout = info.layout if info.calls else "–"
    return f"{star} {info.path}", str(info.calls), shape, layout, info.kind


def print_table(
    rows: Sequence[Sequence[str]], right: Sequence[int] = (), below: Sequence[str] = ()
) -> None:
    """Aligned columns, those in `right` to the right; the texts of `below` under their rows."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, text in itertools.zip_longest(rows, below, fillvalue=""):
        cells = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
        if text:
            print(f"      {text}")
