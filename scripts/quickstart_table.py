"""Prints what quickstart.sh found: sizes, and the classes of the photographs side by side."""
import json
import pathlib
import sys


def best(path):
    """Image name -> (class, probability)."""
    results = json.loads(path.read_text())
    return {pathlib.Path(result["image"]).name: (result["classes"][0]["name"],
                                                 result["classes"][0]["score"])
            for result in results}


def main():
    out = pathlib.Path(sys.argv[1])
    report = json.loads((out / "report.json").read_text())
    fp32, quantized = best(out / "fp32_classes.json"), best(out / "quantized_classes.json")
    size = report["size"]

    print(f"\nEfficientNet-Lite0 to {report['scheme']} without data, in {report['seconds']:.1f} s")
    print(f"  parameters  {size['fp32_bytes'] / 1e6:.1f} MB -> {size['quantized_bytes'] / 1e6:.1f} MB"
          f" ({size['fp32_bytes'] / size['quantized_bytes']:.1f} times smaller)\n")
    row = "  {:<20}{:<28}{}".format
    print(row("photograph", "FP32", "quantized"))
    for image, (name, score) in fp32.items():
        other, other_score = quantized[image]
        print(row(image, f"{name} {score:.2f}", f"{other} {other_score:.2f}"))
    print(f"\n  {out / 'model.onnx'} runs in any ONNX runtime; {out / 'report.html'} tells the rest.")


if __name__ == "__main__":
    main()
