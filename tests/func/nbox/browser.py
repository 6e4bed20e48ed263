"""browser.py PAGE...: opens the pages in headless Chromium, as a phone, a desktop and a printer would, light and dark. None may print
to the console, ask for anything but itself, be wider than its screen, or have text that stands out too little (WCAG 2: 4.5)."""
import json, os, subprocess, sys, tempfile

CONTRAST = """(() => {
  const channel = c => (c /= 255) <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
  const light = s => { const [r, g, b] = s.match(/[\\d.]+/g).map(Number); return .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b); };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const ratio = s => { const a = light(s); return (Math.max(a, paper) + .05) / (Math.min(a, paper) + .05); };
  const least = [...document.querySelectorAll("h1, h2, p, th, td, figcaption, .f-ink, .f-soft")].map(e => {
    const style = getComputedStyle(e);
    return ratio(e instanceof SVGElement ? style.fill : style.color); });
  return Math.min(...least); })()"""
WIDTH = "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
NOISE = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
SCREENS = (("phone", 360, "screen", "light"), ("phone", 360, "screen", "dark"), ("desktop", 1100, "screen", "light"),
           ("paper", 760, "print", "dark"))


class Browser:
    """Chromium, spoken to through a pipe: descriptors 3 and 4, messages that end with a NUL."""

    def __init__(self, folder):
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()

        def descriptors():
            os.dup2(theirs_in, 30), os.dup2(theirs_out, 40), os.dup2(30, 3), os.dup2(40, 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
             "--user-data-dir=" + folder, "about:blank"],
            preexec_fn=descriptors, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in), os.close(theirs_out)
        self.number, self.rest, self.events, self.session = 0, b"", [], None

    def read(self):
        while b"\0" not in self.rest:
            got = os.read(self.into, 1 << 16)
            assert got, "Chromium has gone"
            self.rest += got
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while (answer := self.read()).get("id") != self.number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self.events.append(self.read())

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]


def look(browser, page, screen, width, media, scheme):
    url = "file://" + os.path.abspath(page)
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
    browser.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(url)
    wide, contrast = browser.value(WIDTH), browser.value(CONTRAST)
    noise = [e for e in browser.events if e["method"] in NOISE]
    asked = [e["params"]["request"]["url"] for e in browser.events if e["method"] == "Network.requestWillBeSent"]
    where = f"{page}, {screen} {scheme}:"
    assert not noise, f"{where} the console says {noise}"
    assert [a for a in asked if not a.startswith("data:")] == [url], f"{where} it asks for {asked}"
    assert wide <= width, f"{where} {wide} pixels wide, the screen has {width}"
    assert contrast >= 4.5, f"{where} a text has a contrast of {contrast:.2f}"


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    browser = Browser(folder)
    try:
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            browser.call(domain + ".enable")
        for page in sys.argv[1:]:
            for screen in SCREENS:
                look(browser, page, *screen)
        browser.session = None
        browser.call("Browser.close")
    finally:
        browser.process.kill()
        browser.process.wait()
