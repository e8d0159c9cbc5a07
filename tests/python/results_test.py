# SPDX-License-Identifier: Apache-2.0
"""What the functions return: a mapping of the JSON, names for its parts, and how it is shown."""
import contextlib
import importlib.util
import io
import json
import pathlib
import sys
import unittest
from unittest import mock

import tiny
from tiny import SHORT, TRAINED

import zsq


class Results(tiny.WithFolder):
    def setUp(self):
        super().setUp()
        self.report = zsq.quantize(self.model, output=self.folder / "<b>out", recipe="instant", progress=False,
                                   settings=SHORT)

    def test_a_report_is_report_json(self):
        written = json.loads((self.folder / "<b>out/report.json").read_text())
        self.assertEqual(dict(self.report), written)
        self.assertEqual(len(self.report), len(written))
        with self.assertRaises(KeyError):
            _ = self.report["nothing"]

    def test_fields_of_a_report(self):
        report = self.report
        self.assertEqual(report.verdict, report["verdict"])
        self.assertTrue(0.5 < report.agreement <= 1 and 0 <= report.divergence < 1, report)
        self.assertEqual([(layer["name"], layer["weight_bits"]) for layer in report.layers],
                         [("conv0", 8), ("conv1", 8), ("fc", 8)])
        self.assertEqual(report.path, self.folder / "<b>out/model.onnx")
        self.assertTrue(report.page.read_text().startswith("<!"))

    def test_what_was_not_measured_is_none(self):
        report = zsq.Report({**self.report, "agreement": None, "divergence": None}, pathlib.Path("x"))
        self.assertEqual((report.agreement, report.divergence), (None, None))
        self.assertIn("not measured", str(report))

    def test_as_text(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.report.show()
        self.assertEqual(said.getvalue(), f"{self.report}\n")
        for part in (self.report.verdict, f"{100 * self.report.agreement:.1f} %", "W8A8", "model.onnx"):
            self.assertIn(part, said.getvalue())
        self.assertTrue(repr(self.report).startswith("<zsq.Report verdict: "))

    def test_as_html(self):
        page = self.report._repr_html_()
        self.assertEqual(page.count("<tr>"), len(str(self.report).splitlines()) + 1 + 3)
        self.assertIn("conv1", page)
        self.assertIn("&lt;b&gt;out", page)
        self.assertNotIn("<b>out", page)

    def test_a_comparison_has_rows_and_no_folder(self):
        result = zsq.Comparison({"agreement": 0.5, "divergence": 0.25, "layers": [{"name": "a", "sqnr": 12.345678}]})
        self.assertEqual((result.agreement, result.divergence, result.layers[0]["name"]), (0.5, 0.25, "a"))
        self.assertIn("<td>12.35</td>", result._repr_html_())

    def test_without_pandas_there_is_no_table(self):
        with mock.patch.dict(sys.modules, {"pandas": None}), self.assertRaises(ImportError):
            self.report.to_pandas()

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "no pandas")
    def test_as_a_table_of_pandas(self):
        table = self.report.to_pandas()
        self.assertEqual(list(table["name"]), ["conv0", "conv1", "fc"])
        self.assertEqual(list(table["weight_bits"]), [8, 8, 8])
        self.assertEqual(table["output_sqnr"].dtype.kind, "f")

    @unittest.skipUnless(importlib.util.find_spec("IPython"), "no IPython")
    def test_show_in_a_shell_of_ipython_is_the_page(self):
        from IPython.core.interactiveshell import InteractiveShell
        from IPython.utils.capture import capture_output

        InteractiveShell.instance(history_manager=None)
        self.addCleanup(InteractiveShell.clear_instance)
        with capture_output() as captured:
            self.report.show()
        self.assertEqual(captured.outputs[0].data["text/html"], self.report._repr_html_())

    @unittest.skipUnless(importlib.util.find_spec("tqdm"), "no tqdm")
    def test_progress_is_a_bar_of_tqdm(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            zsq.quantize(self.model, output=self.folder / "bar", recipe="deploy", settings=TRAINED)
        self.assertRegex(said.getvalue(), r"fine-tune: +\d+%\|.*\| \d+/20 \[")
        self.assertRegex(said.getvalue(), r"loss_student=\d")


if __name__ == "__main__":
    unittest.main()
