# SPDX-License-Identifier: Apache-2.0
"""Steps of drawn_operators.py that change height and width by interpolation."""


def resize(net):
    if len(net.shape) != 4 or net.opset < 10 or max(net.shape[2:]) > 10:
        return None
    scales = [net.choose([1., 2., 3., .5, 1.5, .75]) for _ in range(2)]
    if net.coin(.3):
        scales = [2., 2.]
    if net.opset < 11:
        return net.add("Resize", [net.x, net.floats([1, 1, *scales])], mode=net.choose(["nearest", "linear"]))
    attributes = {"mode": net.choose(["nearest", "linear", "cubic"])}
    attributes |= net.some(coordinate_transformation_mode=net.choose(
        ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
        + (["half_pixel_symmetric"] if net.opset >= 19 else []) + (["tf_half_pixel_for_nn"] if net.opset < 13 else [])))
    if attributes["mode"] == "nearest":
        attributes |= net.some(nearest_mode=net.choose(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if attributes["mode"] == "cubic":
        attributes |= net.some(cubic_coeff_a=net.choose([-.75, -.5]), exclude_outside=net.whole(0, 1))
    if net.opset >= 18 and attributes["mode"] != "nearest" and net.coin(.2):
        attributes["antialias"] = 1
    axes = None
    if net.opset >= 18 and net.coin(.3):
        axes = net.choose([[2, 3], [3, 2], [-2, -1]])
        attributes["axes"] = axes
    by_size = net.coin(.4)
    numbers = [max(1, int(e * s)) for e, s in zip(net.shape[2:], scales)] if by_size else scales
    if axes == [3, 2]:
        numbers = numbers[::-1]
    if by_size and axes and min(axes) > 0 and net.coin(.5):  # onnxruntime does not know negative axes here
        attributes["keep_aspect_ratio_policy"] = net.choose(["stretch", "not_larger", "not_smaller"])
    if axes is None:
        if by_size:
            numbers = net.add("Concat", [net.batch_of(net.x), net.integers([net.shape[1], *numbers])], axis=0)
        else:
            numbers = net.floats([1, 1, *numbers])
    else:
        numbers = net.integers(numbers) if by_size else net.floats(numbers)
    roi = net.floats([]) if net.opset < 13 else ""
    none = net.floats([]) if net.opset < 13 else ""
    return net.add("Resize", [net.x, roi, none, numbers] if by_size else [net.x, roi, numbers], **attributes)


def upsample(net):
    if len(net.shape) != 4 or net.opset > 9 or max(net.shape[2:]) > 10:
        return None
    scales = [1., 1., net.choose([1., 2., 3.]), net.choose([1., 2.])]
    mode = net.some(mode=net.choose(["nearest", "linear"]))
    if net.opset < 9:
        return net.add("Upsample", [net.x], scales=scales, **mode)
    return net.add("Upsample", [net.x, net.floats(scales)], **mode)
