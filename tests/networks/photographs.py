# SPDX-License-Identifier: Apache-2.0
"""Real images for tests: photographs of scikit-image, cut and labelled by what PyTorch makes of them."""
import pathlib
import sysconfig

import numpy
import PIL.Image
import torch

# These packages are here for the files in them; what they need to be imported is not.
PACKAGES = pathlib.Path(sysconfig.get_path("purelib"))
PHOTOGRAPHS = ("astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg", "retina.jpg")
CUTS = ((0, 0, 1, 1), (0, 0, 0.7, 0.7), (0.3, 0, 1, 0.7), (0, 0.3, 0.7, 1), (0.3, 0.3, 1, 1))


def cuts():
    for name in PHOTOGRAPHS:
        photograph = PIL.Image.open(PACKAGES / "skimage/data" / name).convert("RGB")
        width, height = photograph.size
        for left, top, right, bottom in CUTS:
            yield photograph.crop((int(left * width), int(top * height), int(right * width), int(bottom * height)))


def save_imagenet(network, folder):
    """Class folders, synsets.txt and classes.txt as ImageNet has them, and what preprocessing EfficientNet-Lite0
    asks for: the middle square of 224/256 of the shorter side, bicubic to 224 x 224, (pixel - 127) / 128. Beside it
an npz of the images after that and their labels. Returns two of them."""
    info = PACKAGES / "timm/data/_info"
    synsets = (info / "imagenet_synsets.txt").read_text().split()
    words = dict(line.split("\t") for line in (info / "imagenet_synset_to_lemma.txt").read_text().splitlines())
    folder.mkdir()
    (folder / "synsets.txt").write_text("\n".join(synsets) + "\n")
    (folder / "classes.txt").write_text("".join(words[synset].split(", ")[0] + "\n" for synset in synsets))
    inputs, labels = [], []
    for number, image in enumerate(cuts()):
        side = 224 * min(image.size) // 256
        left, top = ((length - side + 1) // 2 for length in image.size)
        square = image.crop((left, top, left + side, top + side)).resize((224, 224), PIL.Image.Resampling.BICUBIC)
        pixels = torch.tensor(numpy.array(square, numpy.float32)).permute(2, 0, 1)[None]
        inputs.append((pixels - 127) / 128)
        labels.append(int(network(inputs[-1]).argmax()))
        place = folder / synsets[labels[-1]]
        place.mkdir(exist_ok=True)
        image.save(place / f"{number:02}.png")
    numpy.savez(folder.with_suffix(".npz"), images=torch.cat(inputs).numpy(), labels=numpy.array(labels))
    return torch.cat(inputs[:2])


def save_cifar(network, folder):
    """test_batch.bin: each photograph at many scales, 32 x 32, in the layout of CIFAR-10's binary version."""
    mean, std = (torch.tensor(x).reshape(3, 1, 1) for x in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    pixels = []
    for image in cuts():
        for side in range(40, min(image.size), 40):
            small = image.crop((0, 0, side, side)).resize((32, 32), PIL.Image.Resampling.BOX)
            pixels.append(torch.tensor(numpy.array(small)).permute(2, 0, 1))
    pixels = torch.stack(pixels)
    labels = network((pixels / 255 - mean) / std).argmax(1)
    records = (bytes([label]) + image.contiguous().numpy().tobytes() for label, image in zip(labels, pixels))
    folder.mkdir()
    (folder / "test_batch.bin").write_bytes(b"".join(records))
