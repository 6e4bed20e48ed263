"""check-page.py PAGE SUMMARY...: the page needs no other file, holds the summaries, and each of its figures is one of theirs, to the
digits that it shows."""
import html.parser, json, sys


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.figures, self.json, self.open = [], "", None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        outside = [v for k, v in attrs.items() if k in ("src", "href", "srcset", "data", "action", "background")]
        assert all(v == "data:," for v in outside), f"<{tag}> needs {outside}"
        assert not [k for k in attrs if k.startswith("on")], f"<{tag}> has a handler"
        assert tag not in ("b", "iframe", "object", "img"), f"<{tag}>: somebody's text is obeyed"
        assert tag != "script" or attrs == {"type": "application/json", "id": "summary"}, f"a script: {attrs}"
        self.open = (tag, attrs)
        if tag == "data":
            self.figures.append([attrs["data-key"], attrs["value"], ""])

    def handle_endtag(self, tag):
        self.open = None

    def handle_data(self, text):
        if self.open and self.open[0] == "data":
            self.figures[-1][2] += text
        elif self.open and self.open[0] == "script":
            self.json += text


def at(summary, key):
    for k in key.split("."):
        summary = summary[int(k)] if isinstance(summary, list) else summary[k]
    return summary


text = open(sys.argv[1], encoding="utf-8").read()
assert "url(" not in text and "@import" not in text
page = Page(text)
summaries = [json.load(open(path)) for path in sys.argv[2:]]
held = json.loads(page.json)
assert held == (summaries if len(summaries) > 1 else summaries[0]), "the JSON in the page is another"
for key, value, shown in page.figures:
    want = at(held, key)
    assert float(value) == want, f"{key}: {value}, not {want}"
    number = shown.split()[0]
    digits = len(number.partition(".")[2])
    assert number == f"{want:.{digits}f}", f"{key}: {number} is shown, not {want}"
assert len(page.figures) >= 15, page.figures
if "points" not in held: # a plan's page has other figures
    assert {k.split(".", 1)[1] if len(summaries) > 1 else k for k, _, _ in page.figures} >= {"steps.ms.p50", "exposed_ms", "injected_ms", "modelled_ms"}
