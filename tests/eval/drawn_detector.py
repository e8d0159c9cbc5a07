# SPDX-License-Identifier: Apache-2.0
"""Detectors of three convolutions with strides 8, 16 and 32, in every layout of outputs, as ONNX files."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

HEIGHT, WIDTH, CLASSES = 64, 96, 3
STRIDES = (8, 16, 32)


class Network:
    """Outputs by a layout; inside, of each map, [N, places, 5 + CLASSES] numbers."""

    def __init__(self, path, layout):
        self.draws, self.nodes, self.constants = np.random.default_rng(5), [], []
        maps = [self.map(stride, 5 + CLASSES) for stride in STRIDES]
        if layout == "yunet":
            outputs = [self.part(x, begin, end, f"{name}_{s}", function) for x, s in zip(maps, STRIDES)
                       for name, begin, end, function in (("cls", 4, 5, "Sigmoid"), ("obj", 5, 6, "Sigmoid"),
                                                          ("bbox", 0, 4, "Tanh"))]
        else:
            self.add("Concat", maps, "all", axis=1)
            self.part("all", 0, 4, "box", "Sigmoid")
            outputs = getattr(self, layout)()
        image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, HEIGHT, WIDTH])
        found = [helper.make_tensor_value_info(name, TensorProto.INT64 if name == "labels" else TensorProto.FLOAT, None)
                 for name in outputs]
        graph = helper.make_graph(self.nodes, "detector", [image], found, self.constants)
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)

    def add(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def constant(self, name, value, kind=np.float32):
        self.constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def map(self, stride, channels):
        weight = self.draws.normal(0, 7 / stride, (channels, 3, stride, stride)) / 3**.5
        weight -= weight.mean((1, 2, 3), keepdims=True)
        inputs = ["image", self.constant(f"weight_{stride}", weight)]
        self.add("Conv", inputs, f"conv_{stride}", strides=[stride] * 2, kernel_shape=[stride] * 2)
        self.add("Transpose", [f"conv_{stride}"], f"last_{stride}", perm=[0, 2, 3, 1])
        return self.add("Reshape", [f"last_{stride}", self.constant(f"shape_{stride}", [0, -1, channels], np.int64)],
                        f"map_{stride}")

    def part(self, x, begin, end, output, function):
        name = output + ".part" if function else output
        bounds = [self.constant(f"{output}.{k}", [v], np.int64) for k, v in (("b", begin), ("e", end), ("a", 2))]
        self.add("Slice", [x, *bounds], name)
        return self.add(function, [name], output) if function else output

    def pixels(self):
        """Centre and size in pixels of the input."""
        return self.add("Mul", ["box", self.constant("sides", [WIDTH, HEIGHT, 60, 40])], "pixels")

    def yolov8(self):
        self.part("all", 4, 4 + CLASSES, "scores", "Sigmoid")
        self.add("Concat", [self.pixels(), "scores"], "rows", axis=2)
        return [self.add("Transpose", ["rows"], "output0", perm=[0, 2, 1])]

    def yolov5(self):
        self.part("all", 4, 5 + CLASSES, "scores", "Sigmoid")
        return [self.add("Concat", [self.pixels(), "scores"], "output", axis=2)]

    def corners(self, output):
        halves = self.add("Mul", ["box", self.constant("relative", [1, 1, .3, .3])], "halves")
        for name, begin in (("centre", 0), ("half", 2)):
            self.part(halves, begin, begin + 2, name, None)
        sides = [self.add(kind, ["centre", "half"], kind) for kind in ("Sub", "Add")]
        return self.add("Concat", sides, output, axis=2)

    def ssd(self):
        self.part("all", 4, 5 + CLASSES, "logits", None)
        return [self.add("Softmax", ["logits"], "scores", axis=2), self.corners("boxes")]

    def suppressed(self):
        """Boxes, scores and labels that the network's own NonMaxSuppression keeps."""
        self.part("all", 4, 4 + CLASSES, "probabilities", "Sigmoid")
        self.add("Transpose", ["probabilities"], "columns", perm=[0, 2, 1])
        limits = [self.constant(name, value, kind) for name, value, kind in
                  (("most", [300], np.int64), ("limit", [.65], np.float32), ("least", [.001], np.float32))]
        self.add("NonMaxSuppression", [self.corners("corners"), "columns", *limits], "kept")
        for name, column in (("label", 1), ("place", 2)):
            self.add("Gather", ["kept", self.constant(name + ".column", column, np.int64)], name, axis=1)
        self.add("Squeeze", ["corners", self.constant("first", [0], np.int64)], "all.boxes")
        return [self.add("Gather", ["all.boxes", "place"], "boxes"),
                self.add("GatherND", ["columns", "kept"], "scores"), self.add("Identity", ["label"], "labels")]

    def end_to_end(self):
        """[300, 6]: corners, score and class of the best pairs of box and class, as YOLOv10 gives them."""
        self.part("all", 4, 4 + CLASSES, "probabilities", "Sigmoid")
        boxes = self.corners("corners")

        def best(x, most, name):
            self.nodes.append(helper.make_node("TopK", [x, self.constant(name + ".k", [most], np.int64)],
                                               [name + ".value", name], axis=1))
            return self.add("Unsqueeze", [name, self.constant(name + ".last", [-1], np.int64)], name + ".places")

        def gather(x, places, columns, output):
            tiles = self.constant(output + ".tiles", [1, 1, columns], np.int64)
            return self.add("GatherElements", [x, self.add("Tile", [places, tiles], output + ".tiled")], output, axis=1)

        self.add("ReduceMax", ["probabilities"], "largest", axes=[2], keepdims=0)
        places = best("largest", 126, "anchor")
        boxes, scores = gather(boxes, places, 4, "their.boxes"), gather("probabilities", places, CLASSES, "their.scores")
        best(self.add("Flatten", [scores], "flat"), 300, "pair")
        three = self.constant("three", CLASSES, np.int64)
        last = self.constant("last", [-1], np.int64)
        rows = self.add("Unsqueeze", [self.add("Div", ["pair", three], "row"), last], "rows")
        label = self.add("Cast", [self.add("Mod", ["pair.places", three], "label")], "class", to=TensorProto.FLOAT)
        parts = [gather(boxes, rows, 4, "best.boxes"), self.add("Unsqueeze", ["pair.value", last], "score"), label]
        return [self.add("Concat", parts, "output0", axis=2)]
