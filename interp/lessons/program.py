"""A lesson as a program of its own: what its function needs, the function, and one call of it."""

import ast
import inspect
import sys
from collections.abc import Mapping

import interp
from interp.hooks.script_package import package_path
from interp.lessons.base import Choice, Lesson


def program(lesson: Lesson, choices: Mapping[str, Choice] | None = None) -> str:
    """Source that runs as it stands, from any folder, and prints what the lesson prints.

    Parameters
    ----------
    lesson : Lesson
    choices : mapping, optional
        Values of its parameters; what is left out is its default.
    """
    standard, others, package = _imports(lesson)
    if package:
        standard = sorted([*standard, "import sys"], key=_plain_first)
        package.insert(0, package_path())
    blocks = ["\n".join(block) for block in (standard, others, package) if block]
    given = {**lesson.defaults(), **(choices or {})}
    arguments = [f"{name}={value!r}" for name, value in given.items()]
    if "ledger" in inspect.signature(lesson.function).parameters:
        arguments.insert(0, "ledger=HookLedger()")
    call = f"{lesson.function.__name__}({', '.join(arguments)})"
    head = f"# Lesson {lesson.number}: {lesson.title}\n\n" + "\n\n".join(blocks)
    return f"{head}\n\n\n{lesson.source.rstrip()}\n\n\n{call}\n"


def _imports(lesson: Lesson) -> tuple[list[str], list[str], list[str]]:
    """Import lines for the names that a lesson's source uses: Python's, others', this package's."""
    used = {node.id for node in ast.walk(ast.parse(lesson.source)) if isinstance(node, ast.Name)}
    module = inspect.getmodule(lesson.function)
    assert module is not None
    standard: list[str] = []
    others: list[str] = []
    package: list[str] = []
    public: set[str] = set()
    for statement in ast.parse(inspect.getsource(module)).body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        names = {one.name for one in statement.names if (one.asname or one.name) in used}
        home = (getattr(statement, "module", None) or statement.names[0].name).partition(".")[0]
        if home == "interp":
            public |= names.intersection(interp.__all__)
            names -= public
        statement.names = [one for one in statement.names if one.name in names]
        if names:
            block = standard if home in sys.stdlib_module_names else others
            (package if home == "interp" else block).append(ast.unparse(statement))
    if public:
        package.insert(0, f"from interp import {', '.join(sorted(public))}")
    return standard, others, package


def _plain_first(line: str) -> tuple[bool, str]:
    """Sorts `import x` before `from x import y`, as an import sorter does."""
    return line.startswith("from"), line
