#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives classifiers of CIFAR-10 outputs of every kind, for docs/verdict.json (scripts/measure_verdict.py).

fit_cifar_heads.py FOLDER DATA_BATCH TEST_BATCH --network NAME FILE.onnx
fit_cifar_heads.py FOLDER DATA_BATCH TEST_BATCH --train EPOCHS
    The last linear layer of FILE, which ends in it, or of inverted residuals that are trained on DATA_BATCH first, is
    replaced by one that is fitted to DATA_BATCH. Written are FOLDER/NAME_OUTPUTS.onnx and, of the images of TEST_BATCH,
    FOLDER/OUTPUTS.npz with `images` (preset cifar10) and `labels`. OUTPUTS:
      2_classes, 3_classes, 5_classes   animals or not; what it moves on; pairs of classes: logits
      1_label, 3_labels, 10_labels      properties of the thing (is it an animal, does it fly, ...): end in Sigmoid
      1_value, 2_values, 32_values      fixed mixtures of the features, each of mean 0 and deviation 1
    DATA_BATCH and TEST_BATCH are binary files of CIFAR-10 (a byte of class and 3,072 of pixels for each image).
"""
import argparse
import copy
import pathlib
import sys
import tempfile

import numpy

import train_held_out_network as drawn
import train_verdict_networks

sys.path.append(str(drawn.ROOT / "tests/networks"))
import torch_without_cuda  # noqa: E402

# Of the preset cifar10: ImageNet's, as ResNet-20's training code has them.
MEAN, DEVIATION = (numpy.array(v, dtype="f4").reshape(3, 1, 1)
                   for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
# airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck
PROPERTIES = {"animal": [2, 3, 4, 5, 6, 7], "flies": [0, 2], "wheels": [0, 1, 9], "road": [1, 9], "mammal": [3, 4, 5, 7],
              "hoofs": [4, 7], "at home": [3, 5], "water": [6, 8], "large": [0, 4, 7, 8, 9], "carries people": [0, 1, 7, 8]}


def read(path):
    rows = numpy.fromfile(path, dtype="uint8").reshape(-1, 3073)
    images = rows[:, 1:].reshape(-1, 3, 32, 32).astype("f4") / 255
    return (images - MEAN) / DEVIATION, rows[:, 0].astype(int)


def answers(classes, features):
    """What is right of each image: classes [N], labels [N, K] or values [N, K]."""
    labels = numpy.stack([numpy.isin(classes, there) for there in PROPERTIES.values()], 1)
    mixture = numpy.random.default_rng(0).normal(size=(features.shape[1], 32))
    values = features @ mixture
    values = (values - values.mean(0)) / values.std(0)
    moves_on = numpy.where(labels[:, 1], 0, numpy.where(labels[:, 7], 1, 2))  # air, water, land
    return {"2_classes": labels[:, 0].astype(int), "3_classes": moves_on, "5_classes": classes // 2,
            "1_label": labels[:, :1], "3_labels": labels[:, :3], "10_labels": labels,
            "1_value": values[:, :1], "2_values": values[:, :2], "32_values": values}


def fitted(torch, name, features, right):
    """(weight [K, F], bias [K]) of a linear layer."""
    if "value" in name:
        padded = numpy.concatenate([features, numpy.ones((len(features), 1), "f4")], 1)
        found = numpy.linalg.lstsq(padded, right, rcond=None)[0]
        return found[:-1].T, found[-1]
    layer = torch.nn.Linear(features.shape[1], int(name.split("_")[0]))
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=200)
    x, y = torch.from_numpy(features), torch.from_numpy(right)

    def loss():
        optimizer.zero_grad()
        outputs = layer(x)
        value = (torch.nn.functional.cross_entropy(outputs, y) if y.dim() == 1 else
                 torch.nn.functional.binary_cross_entropy_with_logits(outputs, y.float()))
        value = value + 1e-4 * layer.weight.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    return layer.weight.detach().numpy(), layer.bias.detach().numpy()


def last_linear(model):
    node = model.graph.node[-1]
    if node.op_type != "Gemm" or not any(a.name == "transB" and a.i == 1 for a in node.attribute) or len(node.input) != 3:
        sys.exit(f"fit_cifar_heads: a network that ends in Gemm with transB = 1 and a bias was expected, found {node.op_type}")
    return node


def features_of(model, images):
    import onnx
    import onnxruntime
    onnxruntime.set_default_logger_severity(3)  # it warns of the layer's weights, which nothing reads then
    cut = copy.deepcopy(model)
    node = last_linear(cut)
    del cut.graph.output[:]
    cut.graph.output.append(onnx.helper.make_tensor_value_info(node.input[0], onnx.TensorProto.FLOAT, ["N", None]))
    cut.graph.node.remove(node)
    session = onnxruntime.InferenceSession(cut.SerializeToString(), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return numpy.concatenate([session.run(None, {name: images[i:i + 100]})[0] for i in range(0, len(images), 100)])


def with_head(model, weight, bias, sigmoid):
    import onnx
    model = copy.deepcopy(model)
    node = last_linear(model)
    kept = [i for i in model.graph.initializer if i.name not in node.input[1:]]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    for name, value in zip(node.input[1:], (weight, bias)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(value.astype("f4"), name))
    name = node.output[0]
    if sigmoid:
        node.output[0] = name + ".logits"
        model.graph.node.append(onnx.helper.make_node("Sigmoid", [node.output[0]], [name]))
    del model.graph.output[:]
    model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", len(bias)]))
    onnx.checker.check_model(model)
    return model


def trained(torch, images, classes, epochs, path):
    """Inverted residuals on CIFAR-10, written as `path`."""
    torch.manual_seed(0)
    trunk = train_verdict_networks.trunk_of(torch, "depthwise")
    network = torch.nn.ModuleDict({"10_classes": torch.nn.Linear(4 * train_verdict_networks.FEATURES, 10)})
    train_verdict_networks.train(torch, trunk, network, torch.from_numpy(images),
                                 {"10_classes": torch.from_numpy(classes)}, epochs)
    whole = torch.nn.Sequential(trunk, network["10_classes"]).eval()
    torch.onnx.export(whole, torch.from_numpy(images[:1]), path, dynamo=False, opset_version=17,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, input_names=["input"],
                      output_names=["output"], dynamic_axes={"input": {0: "N"}, "output": {0: "N"}})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("test", type=pathlib.Path)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--network", nargs=2, metavar=("NAME", "FILE"))
    source.add_argument("--train", type=int, metavar="EPOCHS")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        torch_without_cuda.prepare(pathlib.Path(folder))
        import torch
    import onnx
    (images, classes), (others, right) = read(options.data), read(options.test)
    name, file = options.network or ("inverted_residuals", options.folder / "inverted_residuals.onnx")
    if options.train:
        trained(torch, images, classes, options.train, file)
    model = onnx.load(file)
    features, seen = features_of(model, images), features_of(model, others)
    of_test = answers(right, seen)
    for outputs, wanted in answers(classes, features).items():
        weight, bias = fitted(torch, outputs, features, wanted)
        found = seen @ weight.T + bias
        if "label" in outputs:
            found = 1 / (1 + numpy.exp(-found))
        print(f"{name}, {outputs}: {train_verdict_networks.measure_of(outputs, found, of_test[outputs])}")
        onnx.save(with_head(model, weight, bias, "label" in outputs), options.folder / f"{name}_{outputs}.onnx")
        kind = "f4" if "value" in outputs else "int64"
        numpy.savez(options.folder / f"{outputs}.npz", images=others, labels=of_test[outputs].astype(kind))


if __name__ == "__main__":
    main()
