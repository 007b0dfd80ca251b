"""`python -m interp`: what may be typed, and how each way of ending is reported."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from interp.errors import InterpError, WeightsError

FITS = ("crop", "stretch", "letterbox")  # those of interp.geometry, which loads torch

_ABOUT = """\
See what a vision model looks at: a heatmap for each picture, from the command line.

examples:
  python -m interp explain coffee.png --out out
      why the bundled model says «espresso», with no network
  python -m interp explain photos/*.jpg --model resnet50 --target tabby --out out
      where another model sees a tabby in each of many pictures
  python -m interp hook coffee.png --recipe recipe.json
      what the hooks of a recipe change in the answer
  python -m interp models --available
      the models whose weights are on this machine
  python -m interp layers resnet50
      the layers that --layer takes, the recommended one starred

«python -m interp COMMAND --help» says more about one of them.
"""

_EXPLAIN = """\
examples:
  python -m interp explain chelsea.png coffee.png --out out
      the most likely class of each, at the recommended layer of the bundled model
  python -m interp explain cat.jpg --target 281-282 --out out
      what speaks for class 281 rather than for class 282
  python -m interp explain cat.jpg --target "Egyptian cat:prob" --out out
      its probability instead of its logit
  python -m interp explain cup.jpg --model resnet18 --weights years.pth --target '#10' --out out
      class 10 by its index, where a class may be named «10»; =2015 is a class by its name alone
  python -m interp explain cat.jpg --model vgg16 --layer features.28 --method hirescam --out out
      another model, layer and method; several --layer give the mean of their maps
  python -m interp explain cat.jpg --model resnet18 --weights mine.pth --out out
      the weights of your own training; the number of classes is read from the file
  python -m interp explain cat.jpg --json --out out | jq '.[].predictions[0].name'

written for each picture, where STEM is its name without the suffix:
  STEM.METHOD.png    the heatmap on the picture, at its own resolution
  STEM.METHOD.npz    map (the layer's grid), heatmap (the picture's height and width), logits
  STEM.METHOD.json   how it came about
STEM.untrained.METHOD where the weights are random; STEM-2 where two pictures share a STEM.

exit code: 0 all explained; 1 a picture failed (the others are done) or the weights cannot be had;
2 an argument is wrong and nothing was done; 130 interrupted (what was finished is kept).
"""


_HOOK = """\
examples:
  python -m interp hook coffee.png --recipe recipe.json
      the five best classes before and after, and what each hook did
  python -m interp hook coffee.png --recipe recipe.json --out out
      also Grad-CAM before and after as pictures, on one scale, and all numbers as JSON
  python -m interp hook coffee.png --recipe recipe.json --code > hooks.py
      a plain PyTorch script that does the same

a recipe, as the Hook lab saves it:
  {"recipe": 1, "model": "efficientnet_lite0", "steps": [
    {"kind": "forward", "path": "features.8", "action": "channels",
     "values": {"which": "4", "to": "zero"}}]}
kind: forward_pre, forward, full_backward_pre, full_backward or tensor. Optional in a step: call
(the index of one call), of (a parameter's name, for a tensor hook), first, enabled, id.

actions and their values:
  watch
  scale      factor
  clamp      low, high
  zero
  negate
  noise      deviation, seed
  channels   which (4, or 0-15, 20), to (zero or mean)
  patch      picture (a sample's name, or a file, from here or beside the recipe)
  constant   value

written to DIR: STEM.hooks.before.png, STEM.hooks.after.png, STEM.hooks.json;
STEM.untrained.hooks where the weights are random.

exit code: 0 done; 1 a picture or the weights cannot be had; 2 an argument or the recipe is wrong;
130 interrupted.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process if not given.

    Returns
    -------
    int
        The exit code.

    Raises
    ------
    SystemExit
        After --help, and with code 2 where the arguments cannot be parsed.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # not every terminal has × and →
    arguments = _parse(sys.argv[1:] if argv is None else argv)
    # Before torch is imported: its threads else keep one another from a core that is shared.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        code = _run(arguments)
        print(end="", flush=True)
    except InterpError as error:
        print(f"python -m interp: {error}", file=sys.stderr)
        return 1 if isinstance(error, WeightsError) else 2
    except KeyboardInterrupt:
        print("interrupted; what was finished is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Python flushes once more on its way out, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    if not argv:
        parser.print_help(sys.stderr)
        parser.exit(2)
    arguments, rest = parser.parse_known_args(argv)
    # argparse takes no picture behind an option that follows a picture: «a.png --out out b.png».
    if arguments.command == "explain" and not any(text.startswith("-") for text in rest):
        arguments.pictures += rest
    elif rest:
        parser.error(f"{arguments.command} knows no {' '.join(rest)}")
    return arguments


def _run(arguments: argparse.Namespace) -> int:
    from interp import cli  # loads torch, which takes seconds

    if arguments.command == "hook":
        from interp.hook_command import run_recipe

        return run_recipe(arguments)
    match arguments.command:
        case "explain":
            return cli.explain_pictures(arguments)
        case "models":
            return cli.print_models(arguments.available)
        case "layers":
            return cli.print_layers(arguments.model, arguments.weights)
        case _:
            return cli.print_methods()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m interp",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, prog=parser.prog, title="commands"
    )
    _add_explain(commands)
    _add_hook(commands)

    models = commands.add_parser("models", help="list the models", allow_abbrev=False)
    models.description = (
        "Every model and each set of its weights, the default first: parameters in millions, "
        "published ImageNet top-1 accuracy in percent, and where the weights are."
    )
    models.add_argument("--available", action="store_true", help="only what needs no network")

    layers = commands.add_parser("layers", help="list the layers of a model", allow_abbrev=False)
    layers.description = (
        "Every layer of a model in the order of its definition: how often it runs, the shape and "
        "layout of its first output, its class. The recommended layer is starred."
    )
    layers.add_argument("model", metavar="MODEL", help="a name from «models»")
    layers.add_argument(
        "--weights",
        metavar="FILE|ENTRY|none",
        help="as for explain; without it none are downloaded, as shapes hardly depend on them",
    )

    methods = commands.add_parser("methods", help="list the methods", allow_abbrev=False)
    methods.description = "Every method: its name, what it shows, and the paper."
    return parser


def _add_explain(commands: "argparse._SubParsersAction[_Parser]") -> None:
    explain = commands.add_parser(
        "explain",
        help="write a heatmap for each picture",
        description="Write a heatmap for each picture: which places the model's answer rests on.",
        epilog=_EXPLAIN,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = explain.add_argument
    add(
        "pictures",
        nargs="+",
        metavar="PICTURE",
        help="JPEG, PNG, WebP, BMP, TIFF or GIF; for a folder write FOLDER/*",
    )
    add("--out", required=True, metavar="DIR", help="where to write; made where it is missing")
    add("--model", metavar="NAME", help="from «models»; default: EfficientNet-Lite0, bundled")
    _add_weights(explain)
    add("--method", default="grad-cam", metavar="M", help="from «methods»; default: %(default)s")
    add(
        "--layer",
        action="append",
        metavar="L",
        help="from «layers»; L#1 is its second call; may be repeated; default: the recommended one",
    )
    _add_question(explain)
    add("--json", action="store_true", help="print the manifests as a JSON list, and no lines")


def _add_hook(commands: "argparse._SubParsersAction[_Parser]") -> None:
    hook = commands.add_parser(
        "hook",
        help="run a recipe of hooks on a picture",
        description="Run a picture without the hooks of a recipe and with them: what they change.",
        epilog=_HOOK,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = hook.add_argument
    add("picture", metavar="PICTURE", help="JPEG, PNG, WebP, BMP, TIFF or GIF")
    add("--recipe", required=True, metavar="FILE", help="JSON, as the Hook lab saves it")
    add("--model", metavar="NAME", help="from «models»; default: the recipe's, or the bundled one")
    _add_weights(hook)
    _add_question(hook)
    add("--out", metavar="DIR", help="where to write, if at all; made where it is missing")
    add("--json", action="store_true", help="print all numbers as JSON, and no lines")
    add(
        "--code",
        action="store_true",
        help="print the plain PyTorch script and run no hook; not with --out or --json",
    )


def _add_weights(command: _Parser) -> None:
    command.add_argument(
        "--weights",
        default="default",
        metavar="FILE|ENTRY|none",
        help="a .pth, .pt or .safetensors file, an entry from «models», or none for an untrained "
        "net; default: the first entry, downloaded where it is not on this machine",
    )


def _add_question(command: _Parser) -> None:
    add = command.add_argument
    add(
        "--target",
        default="",
        metavar="T",
        help="a class index or name, the difference of two (281-282), :prob or :logprob behind "
        "it; where a name looks like one of these, «#10» is the index and «=10» the name, also in "
        "a difference (=10-=2); default: the most likely class",
    )
    add(
        "--fit",
        default="crop",
        choices=FITS,
        metavar="|".join(FITS),
        help="what of the picture the model sees: its middle, as in training; all of it, "
        "distorted to a square; all of it, with bars; default: %(default)s",
    )
    add("--device", default="auto", metavar="auto|cpu|cuda|mps", help="default: %(default)s")


if __name__ == "__main__":
    sys.exit(main())
