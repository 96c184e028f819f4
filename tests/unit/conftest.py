"""A real browser for tests of what is made for one: Chromium without a window, driven by its own protocol."""
import json
import os
import select
import shutil
import subprocess
import sys

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--remote-debugging-pipe",
           "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars")
PATIENCE = 90  # seconds, for an answer
# Chromium reads messages from descriptor 3 and writes them to descriptor 4.
START = """
import os, sys
reading, writing = map(int, sys.argv[1:3])
reading, writing = os.dup(reading), os.dup(writing)
while reading < 5: reading = os.dup(reading)
while writing < 5: writing = os.dup(writing)
os.dup2(reading, 3); os.dup2(writing, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A browser with one page.

    Notes : Chrome DevTools Protocol; each message is JSON and ends with a NUL.
    """

    def __init__(self, program, folder):
        to_browser, self._writing = os.pipe()
        reading, from_browser = os.pipe()
        self._reading = os.fdopen(reading, "rb", buffering=0)
        self._received = b""
        # What is loaded before the interpreter, for the sanitizers, is not for the browser.
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, str(to_browser), str(from_browser), program, *OPTIONS,
             f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        os.close(to_browser)
        os.close(from_browser)
        self._count, self._session, self.events = 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Call a method of the protocol and return its result; events meanwhile are kept."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._count:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self):
        while b"\0" not in self._received:
            if not select.select([self._reading], [], [], PATIENCE)[0]:
                raise TimeoutError(f"the browser has said nothing for {PATIENCE} s")
            part = self._reading.read(1 << 16)
            assert part, "the browser has ended"
            self._received += part
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)

    def show(self, path, *, width=900, dark=False):
        """Load a file and wait until it is there."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events.clear()
        self.call("Page.navigate", url=f"file://{path}")
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def run(self, script):
        """Return the value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def complaints(self):
        """Return what the page and the browser complained of since it was shown."""
        return [event for event in self.events if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]

    def requests(self):
        """Return the addresses that were asked for since the page was shown, but for its own."""
        asked = [event["params"]["request"]["url"] for event in self.events
                 if event["method"] == "Network.requestWillBeSent"]
        return [url for url in asked[1:] if not url.startswith("data:")]

    def close(self):
        """End the browser."""
        os.close(self._writing)
        self._reading.close()
        self._process.terminate()
        self._process.wait()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Return a `Browser`; without one on this machine the test is skipped.

    It is closed after the module: at rest it takes a CPU for 40 ms in each second.
    """
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium on this machine to look at the page with")
    found = Browser(program, tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


@pytest.fixture
def contrasts():
    """Return a function for `Browser.run`: the contrast of every text that is shown to what is behind it.

    Notes : Web Content Accessibility Guidelines 2.1, "contrast ratio" and "relative luminance".
    """
    return """(() => {
        const light = (colour) => { const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(Number).map((c) => {
            c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const behind = (element) => { for (; element; element = element.parentElement) {
            const back = getComputedStyle(element).backgroundColor;
            if (!/, 0\\)$|transparent/.test(back)) return back; } return "rgb(255, 255, 255)"; };
        const found = {};
        for (const element of document.querySelectorAll("body *")) {
            const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
            if (!own || !element.getClientRects().length || element.matches("style, script")) continue;
            const style = getComputedStyle(element);
            const a = light(element.closest("svg") ? style.fill : style.color), b = light(behind(element));
            found[element.textContent.slice(0, 40)] = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        }
        return found; })()"""
