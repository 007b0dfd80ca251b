import csv
import io

from interp import open_picture
from interp.inspection.travel import travel
from interp.ui.gradients_files import gradients_csv
from interp.ui.gradients_runs import Run


def test_a_line_for_every_module_of_every_run(bundled, coffee):
    found = travel(bundled, open_picture(coffee))
    lines = list(
        csv.DictReader(io.StringIO(gradients_csv([Run("a", found), Run("b", found)]).decode()))
    )
    assert [line["run"] for line in lines] == ["a"] * len(found.rows) + ["b"] * len(found.rows)
    for line, row in zip(lines, found.rows, strict=False):
        assert (line["path"], line["kind"], line["verdict"]) == (row.path, row.kind, row.verdict)
        assert float(line["gradient_norm"]) == row.gradient_norm
        assert line["parameter_norm"] == (
            "" if row.parameter_norm is None else str(row.parameter_norm)
        )
