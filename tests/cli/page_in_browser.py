#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens pages of reports as a reader does: page_in_browser.py [--shots FOLDER] PAGE...

Checks that each page is well-formed; then, in headless Chromium (or the program that ZSQ_CHROMIUM names),
that it says nothing on the console, asks the network for nothing, shows its images, sorts its tables by a
click, needs no sideways scrolling at 360 pixels and is dark on request. Exits 77 if there is no browser.
--shots keeps pictures of it: light, dark, on a phone, and as PDF.
"""
import argparse
import base64
import fcntl
import html.parser
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

VOID = {"meta", "img", "br", "hr", "link", "input", "rect", "line", "circle", "polyline"}
BROWSERS = ["chromium", "chromium-browser", "google-chrome", "chrome", "chromium-headless-shell"]


class WellFormed(html.parser.HTMLParser):
    """Every element that opens is closed, in order; every table has a caption and headings with a scope."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"
        captioned = self.seen.count("caption") + text.count('<table class="facts"')
        assert self.seen.count("table") == captioned, "a table without a caption"
        assert self.seen.count("main") == self.seen.count("h1") == self.seen.count("title") - text.count("<svg") == 1

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice"
        assert tag != "th" or "scope" in names, "<th> without scope"
        assert tag != "img" or dict(attributes).get("alt"), "<img> without alt"
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()


class Browser:
    """Chromium by its DevTools protocol, over the pipe that it reads as descriptor 3 and writes as 4."""

    def __init__(self, program, folder):
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        above = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, to_write)]
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                   "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]
        self.process = subprocess.Popen(command, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=lambda: [os.dup2(end, n) for n, end in enumerate(above, 3)])
        for end in (to_read, to_write, *above):
            os.close(end)
        self.events, self.count, self.rest, self.session = [], 0, b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def receive(self):
        while b"\0" not in self.rest:
            part = os.read(self.read_end, 1 << 20)
            assert part, "the browser has ended"
            self.rest += part
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.count:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def show(self, width, scheme="light"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def complaints(self):
        """What the console and the network say of the page that is open."""
        for event in self.events:
            method, parameters = event["method"], event["params"]
            if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                yield json.dumps(parameters)
            if method == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not url.startswith("data:") and url != parameters["documentURL"]:
                    yield "asks for " + url

    def close(self):
        self.session = None
        self.call("Browser.close")
        self.process.wait(timeout=60)


def check_sorting(browser):
    """Of every column of every table: the numbers, or texts, ascend after one click and descend after two."""
    script = """(() => { const faults = [];
      const key = (cell, numeric) => numeric
          ? Math.max(...(cell.match(/-?[0-9.]+(?:e-?[0-9]+)?/g) ?? []).map(Number)) : cell;
      for (const table of document.querySelectorAll('.scroll > table'))
        [...table.tHead.rows[0].cells].forEach((head, c) => {
          const numeric = head.className === 'number';
          for (const sign of [1, -1]) {
            head.querySelector('button').click();
            const cells = [...table.tBodies[0].rows].map(row => row.cells[c].textContent).filter(t => t);
            for (let i = 1; i < cells.length; ++i) {
              const a = key(cells[i - 1], numeric), b = key(cells[i], numeric);
              const order = numeric ? Math.sign(a - b) : a.localeCompare(b, 'en', {numeric: true});
              if (order * sign > 0) faults.push(head.textContent + ': ' + a + ' before ' + b);
            }
            if (head.getAttribute('aria-sort') !== (sign > 0 ? 'ascending' : 'descending'))
              faults.push('aria-sort of ' + head.textContent);
          }
        });
      return faults; })()"""
    assert browser.value("document.querySelectorAll('.scroll > table').length") > 0, "no table"
    assert not browser.value(script), browser.value(script)


def check(browser, page):
    browser.show(1100)
    browser.open(page)
    light = browser.value("getComputedStyle(document.body).backgroundColor")
    assert browser.value("[...document.images].every(image => image.naturalWidth > 0)"), "an image is broken"
    check_sorting(browser)
    browser.show(360)
    for details in ("false", "true"):
        browser.value(f"document.querySelectorAll('details').forEach(d => d.open = {details})")
        width = browser.value("document.documentElement.scrollWidth")
        assert width <= 360, f"{width} pixels wide on a phone of 360"
    browser.show(1100, "dark")
    assert browser.value("getComputedStyle(document.body).backgroundColor") != light, "dark is light"
    complaints = list(browser.complaints())
    assert not complaints, complaints


def take_shots(browser, page, folder):
    stem = folder / f"{page.parent.name}_{page.stem}"
    browser.show(1100)
    browser.open(page)
    for name, width, scheme in (("light", 1100, "light"), ("dark", 1100, "dark"), ("phone", 360, "light")):
        browser.show(width, scheme)
        shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        pathlib.Path(f"{stem}_{name}.png").write_bytes(base64.b64decode(shot))
    pdf = browser.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)["data"]
    pathlib.Path(f"{stem}.pdf").write_bytes(base64.b64decode(pdf))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shots", type=pathlib.Path)
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    pages = [page.resolve() for page in arguments.pages]
    for page in pages:
        WellFormed(page.read_text(encoding="utf-8"))
    program = os.environ.get("ZSQ_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not program:
        print("no Chromium is installed; ZSQ_CHROMIUM may name one")
        return 77
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, folder)
        for page in pages:
            check(browser, page)
            if arguments.shots:
                take_shots(browser, page, arguments.shots)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
