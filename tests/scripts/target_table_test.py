"""What scripts/target_table.py reads, prepares and computes; by hand."""
import pathlib
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts"))
import ncnn_files
import target_table

KEYS = {"size": [2, 2], "crop_order": "resize_then_crop", "crop_fraction": 0.5, "interpolation": "bilinear", "value_range": [0.0, 1.0],
        "mean": [0.5, 0.0, 0.0], "std": [0.5, 1.0, 2.0]}


class TargetTable(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_pixels_are_normalised_per_channel(self):
        image = target_table.normalised(np.array([[[255, 51, 255]]], np.uint8), KEYS)
        np.testing.assert_allclose(image[:, 0, 0], [1.0, 0.2, 0.5], rtol=1e-6)

    def test_cifar_records_are_label_and_planes(self):
        record = np.zeros(3073, np.uint8)
        record[0], record[1], record[1 + 1024 + 33] = 7, 255, 51  # first red pixel, green of row 1, column 1
        path = self.folder / "test_batch.bin"
        np.concatenate([record, record]).tofile(path)
        images, labels = target_table.read_cifar(path, 1, KEYS)
        self.assertEqual(images.shape, (1, 3, 32, 32))
        self.assertEqual(labels.tolist(), [7])
        self.assertAlmostEqual(images[0, 0, 0, 0], 1.0)
        self.assertAlmostEqual(images[0, 0, 0, 1], -1.0)
        self.assertAlmostEqual(images[0, 1, 1, 1], 0.2, places=6)

    def test_a_folder_is_resized_and_cropped_in_the_middle(self):
        pixels = np.zeros((4, 8, 3), np.uint8)
        pixels[1:3, 3:5] = 255
        (self.folder / "b").mkdir()
        Image.fromarray(pixels).save(self.folder / "b/1.png")
        (self.folder / "synsets.txt").write_text("a\nb\n")
        images, labels = target_table.read_folder(self.folder, 5, KEYS)
        self.assertEqual(labels.tolist(), [1])
        np.testing.assert_allclose(images[0, 1], np.ones((2, 2)))

    def test_a_part_is_cut_out_and_resized(self):
        pixels = np.zeros((8, 12, 3), np.uint8)
        pixels[2:6, 4:8] = 255
        image = target_table.fitted(Image.fromarray(pixels), KEYS | {"crop_order": "crop_then_resize"})
        np.testing.assert_array_equal(np.asarray(image), np.full((2, 2, 3), 255))

    def test_the_step_is_that_of_the_largest_weight(self):
        arrays = {"codes": np.array([[-100, 20], [10, 90]], np.int8), "scale": np.array([0.5, 1], np.float32),
                  "zero": np.zeros(2, np.int8), "x_scale": np.float32(0.25), "x_zero": np.uint8(0),
                  "x_codes": np.zeros((1, 2), np.uint8)}
        nodes = [helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["w"], axis=0),
                 helper.make_node("DequantizeLinear", ["x_codes", "x_scale", "x_zero"], ["x"]),
                 helper.make_node("Gemm", ["x", "w"], ["logits"], transB=1)]
        graph = helper.make_graph(nodes, "g", [], [], [numpy_helper.from_array(np.asarray(a), n)
                                                       for n, a in arrays.items()])
        onnx.save(helper.make_model(graph), self.folder / "model.onnx")
        self.assertAlmostEqual(target_table.step_of_last_layer(self.folder), 90 * 1 * 0.25)

    def test_ncnn_files_are_read_and_written_in_float(self):
        param = self.folder / "m.param"
        param.write_text("7767517\n3 3\nInput input 0 1 input 0=1 1=1 2=3\n"
                         "Convolution c 1 1 input c 0=2 1=1 5=1 6=6 8=102 9=1\n"
                         "InnerProduct logits 1 1 c logits 0=1 2=2\n")
        floats = lambda *values: np.array(values, np.float32).tobytes()
        param.with_suffix(".bin").write_bytes(
            b"\x38\x4b\x0d\0" + bytes([1, 2, 3, 252, 5, 6]) + b"\0\0"  # 6 codes, 2 bytes to a multiple of 4
            + floats(0.5, -0.5) + floats(2, 4) + floats(10, 20)  # bias, 1 / steps, input and output
            + b"\0\0\0\0" + floats(7, 8))
        self.assertAlmostEqual(target_table.integer_share("ncnn", param, None), 0.5)
        ncnn_files.write_in_float(param, self.folder / "f.param")
        convolution, inner = ncnn_files.read(self.folder / "f.param")[1:]
        np.testing.assert_allclose(convolution.weights[0], [0.5, 1, 1.5, -1, 1.25, 1.5])
        np.testing.assert_allclose(convolution.weights[1], [0.5, -0.5])
        self.assertEqual(convolution.settings, {"0": "2", "1": "1", "5": "1", "6": "6", "9": "1"})
        np.testing.assert_allclose(inner.weights[0], [7, 8])
        param.with_suffix(".bin").write_bytes(param.with_suffix(".bin").read_bytes() + b"more")
        with self.assertRaisesRegex(ValueError, "52 bytes of weights, 48 are read"):
            ncnn_files.read(param)


if __name__ == "__main__":
    unittest.main()
