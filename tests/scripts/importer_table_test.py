"""Which files scripts/importer_table.py compares with which truth, and what it says of a result; by hand."""
import pathlib
import sys
import tempfile
import types
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts"))
import importer_table


class Zsq:
    """Answers as zsq would: a network without BatchNorm that gives 0.002 of the largest logit too much."""

    def __init__(self):
        self.words = []

    def json(self, *words):
        self.words.append([str(word) for word in words])
        return {"relative_error": 0.002, "notes": ["The network in 'a/b.onnx' has no BatchNorm layers; ..."]}


class ImporterTable(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def truth(self, name, **more):
        np.savez(self.folder / name, input=np.ones([2, 3, 4, 4], np.float32), output=np.array([[4.0, -8.0]]), **more)
        return self.folder / name

    def test_the_truth_is_that_of_the_longest_name(self):
        for name in ("net.npz", "net_large.npz", "other.npz"):
            self.truth(name)
        for name in ("net.onnx", "net.legacy.pth", "net_large.pt2", "net_large_dynamo.onnx", "network.onnx", "net.txt"):
            (self.folder / name).touch()
        named = {file.name: truth.name for file, truth in importer_table.cases([self.folder])}
        self.assertEqual(named, {"net.onnx": "net.npz", "net.legacy.pth": "net.npz", "net_large.pt2": "net_large.npz",
                                 "net_large_dynamo.onnx": "net_large.npz"})

    def test_a_difference_beyond_the_tolerance_is_marked(self):
        self.assertEqual(importer_table.compared(Zsq(), "f", self.truth("a.npz", tolerance=0.1), []), "2e-02")
        self.assertEqual(importer_table.compared(Zsq(), "f", self.truth("b.npz"), []), "2e-02 (beyond 1e-03)")

    def test_a_network_without_batchnorm_is_told(self):
        zsq = Zsq()
        self.assertEqual(importer_table.quantized(zsq, "net.pth", ["--arch", "x"], "out"), "without")
        self.assertEqual(zsq.words[0][-2:], ["--arch", "x"])

    def test_the_size_of_images_is_told_where_zsq_asks_for_it(self):
        def ask(*words):
            raise RuntimeError("zsq: 'net.pt': the file leaves height or width open: give the image size (--image_size)")

        flags = importer_table.flags_of(types.SimpleNamespace(json=ask), pathlib.Path("net.pt"), self.truth("net.npz"), [])
        self.assertEqual(flags, ["--image_size", "4"])
        self.assertEqual(importer_table.flags_of(Zsq(), pathlib.Path("net.pt"), self.truth("net.npz"), []), [])

    def test_a_refusal_ends_the_row_in_its_words(self):
        def refuse(*words):
            raise RuntimeError("zsq: '/a/b/net.pth' holds weights only: name the network. Known: resnet18, resnet34")

        file = self.folder / "net.pth"
        cells = importer_table.row(types.SimpleNamespace(json=refuse), file, self.truth("net.npz"),
                                   types.SimpleNamespace(arch=[]), [], self.folder)
        self.assertEqual(cells, ["net.pth", "'net.pth' holds weights only: name the network", "", "", "", "", "", ""])

    def test_images_are_what_pixels_can_be(self):
        images = importer_table.images_of(self.truth("net.npz"), 50)
        self.assertEqual(images.shape, (50, 3, 4, 4))
        np.testing.assert_array_equal(images[:2], np.ones([2, 3, 4, 4]))
        self.assertEqual((images.min(), images.max()), (-2, 2))

    def test_weights_are_named_by_prefix(self):
        named = [importer_table.named_network("resnet20=resnet20_cifar10")]
        self.assertEqual(importer_table.arch_of(pathlib.Path("resnet20_random.pth"), named), ["--arch", "resnet20_cifar10"])
        self.assertEqual(importer_table.arch_of(pathlib.Path("vgg.pth"), named), [])


if __name__ == "__main__":
    unittest.main()
