"""What `python -m interp hook` does: a recipe of hooks on one picture, before and after."""

import argparse
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

from interp.cli import folder_at, load, print_table, printable
from interp.drawing import DEFAULT_DRAWING
from interp.errors import HookError, InterpError, PictureError
from interp.export import safe_stem, strict, write_together
from interp.hooks.lab import Lab, sample_or_file
from interp.hooks.recipe import Recipe
from interp.hooks.script import script
from interp.inspection.experiment import Change, Experiment, run_experiment
from interp.manifest import png_with
from interp.models.catalog import DEFAULT_MODEL
from interp.models.loading import LoadedModel
from interp.picture import Picture, open_picture, sample_pictures
from interp.render import overlay, scale_for
from interp.targets import parse_target

_HASH = re.compile(r"[0-9a-f]{64}")


def run_recipe(arguments: argparse.Namespace) -> int:
    """`hook`: run a picture without a recipe's hooks and with them.

    Returns
    -------
    int
        0, or 1 where a picture cannot be used.

    Raises
    ------
    InterpError
        An argument is wrong or the weights cannot be had.
    """
    if arguments.code and (arguments.json or arguments.out is not None):
        raise HookError("--code runs no hook and has no numbers: leave --json and --out away")
    recipe = _recipe(arguments.recipe)
    name = arguments.model or recipe.model or DEFAULT_MODEL
    if recipe.model and recipe.model != name:
        print(f"the recipe was made for {recipe.model}, this is {name}", file=sys.stderr)
    model = load(name, arguments.weights, arguments.device)
    parse_target(arguments.target, model.categories)
    if arguments.code:
        _print_script(recipe, model, arguments)
        return 0
    folder = folder_at(arguments.out) if arguments.out is not None else None
    lab = Lab(model)
    try:
        picture = open_picture(arguments.picture)
        lab.sync(recipe, _picture_of(Path(arguments.recipe).parent))
        experiment = run_experiment(lab, picture, arguments.target, arguments.fit)
    except PictureError as error:
        print(printable(str(error)), file=sys.stderr)
        return 1
    finally:
        lab.close()
    report = _report(recipe, lab, experiment, picture)
    if folder is not None:
        written = _write(folder, picture, experiment, report, model)
    if arguments.json:
        print(report, end="")
        return 0
    _print(recipe, lab, experiment, picture)
    if folder is not None:
        print("\n".join(f"→  {printable(str(path))}" for path in written))
    return 0


def _print_script(recipe: Recipe, model: LoadedModel, arguments: argparse.Namespace) -> None:
    """The recipe as a script with whole paths, since it may be run from anywhere."""
    folder = Path(arguments.recipe).parent
    patches = [step for step in recipe.steps if step.action == "patch"]
    names = {str(step.values["picture"]) for step in patches} - sample_pictures().keys()
    source = script(
        recipe,
        model,
        str(Path(arguments.picture).absolute()),
        target=arguments.target,
        fit=arguments.fit,
        files={name: str(_file(name, folder)) for name in names if not _HASH.fullmatch(name)},
    )
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # what Python reads, whatever the terminal takes
    print(source, end="")


def _recipe(path: str) -> Recipe:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise HookError(f"--recipe {path} cannot be read ({reason}): check the file") from error
    return Recipe.from_json(text)


def _picture_of(folder: Path) -> Callable[[str], Picture]:
    """Second pictures by a sample's name, or by a path from here or from the recipe's folder."""

    def find(name: str) -> Picture:
        if _HASH.fullmatch(name):
            raise HookError(
                f"the recipe names its second picture by the SHA-256 {name[:8]}…: write the path "
                "of the file in its place"
            )
        return sample_or_file(name if name in sample_pictures() else str(_file(name, folder)))

    return find


def _file(name: str, folder: Path) -> Path:
    """The whole path of a file that lies here or, where none does, in a folder."""
    beside = folder / name
    return (beside if beside.is_file() and not Path(name).is_file() else Path(name)).absolute()


def _print(recipe: Recipe, lab: Lab, experiment: Experiment, picture: Picture) -> None:
    for step in recipe.steps:
        print(f"{'' if step.enabled else '(off) '}{printable(step.sentence())}")
    print(f"\n{printable(picture.name)}: {experiment.before.attribution.target.label}")
    head = ("class", "logit before", "after", "change", "probability before", "after", "points")
    print_table([head, *map(_row, experiment.changes)], right=range(1, 7))
    if experiment.notes:
        print()
    for note in experiment.notes:
        print(printable(note))
    own, measuring = lab.ledger.summary(), experiment.ledger.summary()
    total = {key: own[key] + measuring[key] for key in own}
    print(
        f"\n{total['registered']} hooks registered ({own['registered']} of the recipe), "
        f"{total['removed']} removed, {total['live']} live, {total['foreign']} foreign"
    )


def _row(change: Change) -> tuple[str, ...]:
    (logit, new_logit), (odds, new_odds) = change.logits, change.probabilities
    return (
        f"{change.name} ({change.index})",
        f"{logit:.3f}",
        f"{new_logit:.3f}",
        f"{round(new_logit - logit, 3) + 0.0:+.3f}",
        f"{100 * odds:.1f} %",
        f"{100 * new_odds:.1f} %",
        f"{round(100 * (new_odds - odds), 1) + 0.0:+.1f}",
    )


def _report(recipe: Recipe, lab: Lab, experiment: Experiment, picture: Picture) -> str:
    """All of it as JSON."""
    whole = {
        "picture": {"name": picture.name, "sha256": picture.sha256},
        "recipe": json.loads(recipe.to_json()),
        "sentences": [step.sentence() for step in recipe.steps],
        **experiment.as_dict(),
        "hooks": {"recipe": lab.ledger.summary(), "measuring": experiment.ledger.summary()},
    }
    return json.dumps(strict(whole), allow_nan=False, indent=2) + "\n"


def _write(
    folder: Path, picture: Picture, experiment: Experiment, report: str, model: LoadedModel
) -> list[Path]:
    """The two heatmaps on one scale, so that they can be compared, and the report."""
    sides = {"before": experiment.before.attribution, "after": experiment.after.attribution}
    scale = scale_for(*(side.map for side in sides.values()), signed=False)
    stem = Path(picture.name).stem
    parts = (stem, "hooks") if model.trained else (stem, "untrained", "hooks")
    origin = {"view": DEFAULT_DRAWING.record(scale), "recipe": json.loads(report)["recipe"]}
    files = {
        f"{safe_stem(*parts, name)}.png": png_with(
            overlay(picture.image, attribution.on_picture(), scale),
            {**attribution.manifest(), **origin, "side": name},
        )
        for name, attribution in sides.items()
    }
    files[f"{safe_stem(*parts)}.json"] = report.encode()
    try:
        return write_together(folder, files)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InterpError(
            f"cannot write into {folder}: {reason}; choose a folder you can write to"
        ) from error
