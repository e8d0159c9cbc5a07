#!/usr/bin/env python3
"""scripts/slurm with programs in the place of Slurm's and of zsq that write down how they are called."""

import os
import pathlib
import stat
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# An array runs at once, one element after the other; the second job of a test has number 2.
SBATCH = """
number=$(( $(cat count 2> /dev/null || echo 0) + 1 )); echo $number > count
echo "sbatch $*" >> log
while [[ $1 == --* ]]; do
  [[ $1 != --array=* ]] || indices=${1#--array=}
  shift
done
for index in ${indices//,/ }; do
  SLURM_ARRAY_JOB_ID=$number SLURM_ARRAY_TASK_ID=$index bash "$@" || echo "element $index: $?" >> log
done
echo "$number;cluster"
"""
SRUN = """[[ $1 == -- ]] && shift; exec "$@" """
SCONTROL = """echo "scontrol $*" >> log"""
SLEEP = ""
ZSQ = """
echo "zsq $*" >> log
case "$*" in
  *--list*) cat list.json ;;
  *stopped*) exit 75 ;;
esac
"""


class SlurmScripts(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        for name, text in dict(sbatch=SBATCH, srun=SRUN, scontrol=SCONTROL, sleep=SLEEP, zsq=ZSQ).items():
            program = self.folder / name
            program.write_text("#!/usr/bin/env bash\n" + text)
            program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def run_script(self, *words, ok=True):
        path = f"{self.folder}:{os.environ['PATH']}"
        done = subprocess.run(["bash", str(ROOT / "scripts/slurm" / words[0]), *words[1:]], cwd=self.folder,
                              env={**os.environ, "PATH": path}, capture_output=True, text=True)
        self.assertEqual(done.returncode == 0, ok, done.stderr)
        log = self.folder / "log"
        return done, log.read_text().splitlines() if log.exists() else []

    def calls(self, log):
        return [line[4:] for line in log if line.startswith("zsq ")]

    def test_a_table_runs_the_cells_that_are_missing_and_then_writes_the_table(self):
        (self.folder / "list.json").write_text(
            '{"cells": [{"number": 0, "lacks": [], "finished": true}, {"number": 1, "lacks": [], "finished": false},'
            ' {"number": 2, "lacks": ["weights"], "finished": false},'
            ' {"number": 3, "lacks": [], "finished": false}]}')
        done, log = self.run_script("reproduce.sh", "some table", "-o", "out")
        self.assertEqual(self.calls(log),
                         ["reproduce some table -o out --list --format json", "reproduce some table -o out --cell 1",
                          "reproduce some table -o out --cell 3", "reproduce some table -o out"])
        submitted = [line for line in log if line.startswith("sbatch")]
        self.assertIn("--array=1,3", submitted[0])
        self.assertIn("--dependency=afterany:1 ", submitted[1])
        self.assertIn("1 of 4 cells lack", done.stderr)

    def test_a_finished_table_is_only_written(self):
        (self.folder / "list.json").write_text('{"cells": [{"number": 0, "lacks": [], "finished": true}]}')
        _, log = self.run_script("reproduce.sh", "t", "-o", "out")
        self.assertEqual(self.calls(log)[1:], ["reproduce t -o out"])

    def test_what_saved_its_state_is_queued_again(self):
        (self.folder / "list.json").write_text('{"cells": [{"number": 5, "lacks": [], "finished": false}]}')
        _, log = self.run_script("reproduce.sh", "stopped", "-o", "out")
        self.assertIn("scontrol requeue 1_5", log)
        self.assertIn("element 5: 75", log)

    def test_a_folder_of_networks(self):
        models = self.folder / "my models"
        models.mkdir()
        for name in ("b.onnx", "a net.pt2", "notes.txt", "c.pth"):
            (models / name).touch()
        finished = self.folder / "out" / "b.onnx"
        finished.mkdir(parents=True)
        (finished / "report.json").touch()
        done, log = self.run_script("quantize_folder.sh", str(models), "out", "--scheme", "W4A4")
        out = self.folder.resolve() / "out"
        self.assertEqual(self.calls(log), [
            f"quantize {models.resolve()}/{name} -o {out}/{name} --resume --scheme W4A4" for name in ("a net.pt2", "c.pth")])
        self.assertIn("2 of 3 networks", done.stdout)

    def test_a_folder_without_networks_is_an_error(self):
        done, _ = self.run_script("quantize_folder.sh", str(self.folder), "out", ok=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no network", done.stderr)


if __name__ == "__main__":
    unittest.main()
