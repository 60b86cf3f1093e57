"""A headless Chromium that is spoken to over its DevTools pipe; standard library only."""
import itertools
import json
import os
import shutil
import subprocess
import tempfile


class Browser:
    """One page. `messages` gathers what the browser reported about it: console, log, exceptions, requests."""

    def __init__(self, width, height):
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        assert program, "chromium is missing: run scripts/setup.sh"
        self.home = tempfile.TemporaryDirectory()
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        # The protocol is fixed to descriptors 3 and 4 of the child.
        shell = f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "chromium", program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={self.home.name}", f"--window-size={width},{height}", "about:blank"],
            pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.stream = os.fdopen(self.read_end, "rb", buffering=0)
        self.rest, self.messages, self.ids, self.session = b"", [], itertools.count(1), None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def receive(self):
        while b"\0" not in self.rest:
            data = self.stream.read(1 << 16)
            assert data, "the browser is gone"
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        number = next(self.ids)
        request = {"id": number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.write_end, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.messages.append(answer)

    def open(self, path):
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while not any(m.get("method") == "Page.loadEventFired" for m in self.messages):
            self.messages.append(self.receive())

    def evaluate(self, expression):
        """The value of a JavaScript expression; it must be JSON."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def of(self, *methods):
        return [m["params"] for m in self.messages if m.get("method") in methods]

    def close(self):
        self.call("Browser.close")
        self.process.wait(timeout=30)
        self.stream.close()
        os.close(self.write_end)
        self.home.cleanup()
