#!/usr/bin/env python3
"""Opens pages in headless Chromium and says what is wrong with them.

    open_page.py [--browser PROGRAM] [--plots N] [--thumbs N] [--shots FOLDER] PAGE.html...

Each page is opened 390 and 1440 px wide, with all that can be unfolded unfolded. Each sentence on standard output is something wrong: an
error on the console, an exception, a request to anything but the page itself, an `svg.plot` without
a size or with nothing in it, fewer plots or pictures than asked for, a picture that does not decode, a page that is wider
than its window. The last line of each page says what was seen. The exit code is 1 when something was wrong, 2
when the browser did not come to an answer. With --shots there is a picture of each whole page for
each width.

It speaks the DevTools protocol through a pipe (the browser reads its descriptor 3 and writes its
descriptor 4; messages are JSON and end with a NUL), which needs no port and no package.
"""
import argparse
import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

WIDTHS = (390, 1440)
HEIGHT = 900
PHONE = 600  # narrower windows are those of phones: the page has to say how wide it wants to be
MOST_HEADING_PX = 60  # a column so narrow that its words are broken has a higher one
LIMIT_S = 90

# What the page looks like once it is there. A picture that cannot be decoded rejects.
LOOK = """
(async () => {
    document.querySelectorAll('details').forEach(d => { d.open = true; });
    await Promise.all([...document.images].map(i => i.decode().catch(() => null)));
    const size = e => { const r = e.getBoundingClientRect(); return [r.width, r.height]; };
    const root = document.documentElement;
    return JSON.stringify({
        title: document.title,
        plots: [...document.querySelectorAll('svg.plot')].map(
            (e, i) => ({name: e.id || e.getAttribute('aria-label') || `number ${i + 1}`,
                        size: size(e), marks: e.querySelectorAll('*').length})),
        images: [...document.images].map(
            (e, i) => ({name: e.alt || `number ${i + 1}`, width: e.naturalWidth, size: size(e)})),
        headings: [...document.querySelectorAll('th')].map(e => ({name: e.innerText, size: size(e)})),
        window: window.innerWidth,
        client: root.clientWidth,
        scroll: Math.max(root.scrollWidth, document.body.scrollWidth),
        text: document.body.innerText.length,
    });
})()
"""


class BrowserError(Exception):
    """The browser did not do what it was told."""


class Browser:
    """A browser process and the two pipes to it."""

    def __init__(self, program, profile, limit_s):
        self.profile = profile
        self.end = time.monotonic() + limit_s
        self.buffer = b""
        self.last_id = 0
        self.events = []
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()
        # Out of the way of 3 and 4, which are taken next.
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_read, from_write)]
        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-extensions", "--no-first-run",
            "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={profile}",
            "about:blank",
        ]
        script = f'exec "$@" 3<&{ends[0]} 4>&{ends[1]} {ends[0]}<&- {ends[1]}>&-'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", *command], pass_fds=ends, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (to_read, from_write, *ends):
            os.close(fd)

    def close(self):
        """Ends the browser and its children, which may write to its folder until they are gone. The folder
        of the socket lies beside it."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            for _ in range(100):
                os.killpg(self.process.pid, 0)
                time.sleep(0.05)
        except ProcessLookupError:
            pass
        self.process.wait()
        socket = pathlib.Path(self.profile, "SingletonSocket")
        if socket.is_symlink():
            shutil.rmtree(socket.readlink().parent, ignore_errors=True)
        os.close(self.to_write)
        os.close(self.from_read)

    def receive(self):
        """The next message."""
        while b"\0" not in self.buffer:
            left = self.end - time.monotonic()
            if left <= 0 or not select.select([self.from_read], [], [], left)[0]:
                raise BrowserError("the browser did not answer in time")
            some = os.read(self.from_read, 1 << 16)
            if not some:
                raise BrowserError("the browser ended")
            self.buffer += some
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        """Calls a method and returns its result; events that come meanwhile are kept."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_write, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.last_id:
                break
            self.events.append(answer)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    def wait_for(self, method):
        """Waits until an event of this name has come."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.receive())


def text_of(argument):
    return str(argument.get("value", argument.get("description", argument.get("type"))))


def judge_events(events, page_url):
    """What the events of one visit tell against the page."""
    wrong = []
    for event in events:
        name, given = event.get("method"), event.get("params", {})
        if name == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            wrong.append("exception: " + text_of(details.get("exception", {})) + " " + details["text"])
        elif name == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            wrong.append("console: " + " ".join(text_of(a) for a in given["args"]))
        elif name == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            wrong.append("log: " + given["entry"]["text"])
        elif name == "Network.requestWillBeSent":
            url = given["request"]["url"]
            if url.split("#")[0] != page_url and not url.startswith("data:"):
                wrong.append("request to " + url[:200])
    return wrong


def judge_look(seen, width, plots, thumbs):
    """What is wrong with how the page looks."""
    wrong = []
    for plot in seen["plots"]:
        if min(plot["size"]) <= 0 or plot["marks"] == 0:
            wrong.append(f"plot {plot['name']} has size {plot['size']} and {plot['marks']} marks")
    for image in seen["images"]:
        if image["width"] <= 0 or min(image["size"]) <= 0:
            wrong.append(f"picture {image['name']} is not shown")
    for heading in seen["headings"]:
        if heading["size"][1] > MOST_HEADING_PX:
            wrong.append(f"the heading {heading['name']!r} is {heading['size'][1]} px high")
    if len(seen["plots"]) < plots:
        wrong.append(f"{len(seen['plots'])} plots, expected {plots}")
    if len(seen["images"]) < thumbs:
        wrong.append(f"{len(seen['images'])} pictures, expected {thumbs}")
    if seen["window"] != width or seen["scroll"] > seen["client"]:
        wrong.append(f"the page is {seen['scroll']} px wide, its window {seen['client']}"
                     f" ({seen['window']} for layout)")
    if seen["title"] == "" or seen["text"] == 0:
        wrong.append("the page has no title or no text")
    return wrong


def shoot(browser, session, path):
    shot = browser.call("Page.captureScreenshot", session, captureBeyondViewport=True)
    path.write_bytes(base64.b64decode(shot["data"]))


def visit(browser, url, width, arguments):
    """Opens the page once; returns what is wrong and what was seen."""
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        browser.call(domain + ".enable", session)
    browser.call("Emulation.setDeviceMetricsOverride", session, width=width, height=HEIGHT,
                 deviceScaleFactor=1, mobile=width < PHONE)
    browser.events.clear()
    failed = browser.call("Page.navigate", session, url=url).get("errorText")
    if failed:
        raise BrowserError(f"{url}: {failed}")
    browser.wait_for("Page.loadEventFired")
    answer = browser.call("Runtime.evaluate", session, expression=LOOK, awaitPromise=True)
    if "exceptionDetails" in answer:
        raise BrowserError(f"looking at the page: {answer['exceptionDetails']}")
    seen = json.loads(answer["result"]["value"])
    wrong = judge_events(browser.events, url)
    wrong += judge_look(seen, width, arguments.plots, arguments.thumbs)
    if arguments.shots is not None:
        arguments.shots.mkdir(parents=True, exist_ok=True)
        name = pathlib.Path(url).parent.name
        shoot(browser, session, arguments.shots / f"{name}-{width}.png")
    browser.call("Target.closeTarget", targetId=target)
    return wrong, seen


def judge_page(browser, page, arguments):
    """Says what is wrong with a page and what was seen of it; true when something was wrong."""
    wrong, looks = [], []
    url = page.resolve(strict=True).as_uri()
    for width in WIDTHS:
        some, seen = visit(browser, url, width, arguments)
        wrong += [f"{page}: {width} px: {what}" for what in some]
        looks.append(f"{width} px: {len(seen['plots'])} plots, {len(seen['images'])} pictures")
    print("\n".join(wrong + [f"{page}: " + "; ".join(looks)]), flush=True)
    return bool(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--browser", default="chromium")
    parser.add_argument("--plots", type=int, default=1)
    parser.add_argument("--thumbs", type=int, default=0)
    parser.add_argument("--shots", type=pathlib.Path)
    parser.add_argument("page", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    bad = False
    with tempfile.TemporaryDirectory(prefix="stoker-browser-", ignore_cleanup_errors=True) as profile:
        browser = Browser(arguments.browser, profile, LIMIT_S)
        try:
            for page in arguments.page:
                bad = judge_page(browser, page, arguments) or bad
        except BrowserError as error:
            print(error)
            return 2
        finally:
            browser.close()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
