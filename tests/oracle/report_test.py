"""report.html in a real browser: nothing is loaded from outside, nothing hostile runs, nothing is reported on the
console, every name and caption can be read, sorting and enlarging work, and a narrow window needs no sideways scrolling."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from browser import Browser

PROGRAM = os.path.join(os.environ["MUSTER_BIN"], "write_sample_run")


def squeezed(text):
    return " ".join(text.split())


def check_quiet(page):
    told = page.of("Runtime.consoleAPICalled", "Log.entryAdded", "Runtime.exceptionThrown", "Page.javascriptDialogOpening")
    assert not told, told
    asked = [r["request"]["url"] for r in page.of("Network.requestWillBeSent")]
    outside = [u for u in asked if not u.startswith("data:image/png;base64,") and not u.endswith("/run/report.html")]
    assert not outside, outside


def check_markup(page):
    inline = page.evaluate("""[...document.querySelectorAll("*")].flatMap(e => e.getAttributeNames()
        .filter(n => n.startsWith("on") || /^\\s*javascript:/i.test(e.getAttribute(n)) && n === "href"))""")
    assert inline == [], inline
    assert page.evaluate("document.querySelectorAll('iframe, object, embed, link, base').length") == 0
    assert page.evaluate("[...document.images].every(i => i.src.startsWith('data:') && i.complete && i.naturalWidth > 0)")
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(set(ids)) == len(ids)
    links = page.evaluate("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
    assert links and all(h.startswith("#") and h[1:] in ids for h in links), links


def check_content(page, results):
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    text = squeezed(page.evaluate("document.body.innerText"))
    for stage in results.values():
        for name in stage.get("metrics", {}):
            assert squeezed(name) in text, name
        for image in stage.get("images", []):
            assert squeezed(image["caption"]) in text, image
    sizes = page.evaluate("[...document.querySelectorAll('.gallery img')].map(i => [i.alt, i.naturalWidth, i.naturalHeight])")
    want = [[x["caption"], x["width"], x["height"]] for s in results.values() for x in s.get("images", [])]
    # The document's parser reads CR and NUL its own way; the sample has none.
    assert sizes == want, next((a, b) for a, b in zip(sizes, want) if a != b)


def column(page, name):
    return page.evaluate(f"""(() => {{
        const table = document.querySelector("table.samples");
        const at = [...table.tHead.rows[0].cells].findIndex(c => c.innerText.startsWith({json.dumps(name)}));
        return [...table.tBodies[0].rows].map(r => r.cells[at].dataset.v ?? r.cells[at].innerText);
    }})()""")


def click_head(page, name):
    page.evaluate(f"""[...document.querySelectorAll("table.samples th button")]
        .find(b => b.innerText.startsWith({json.dumps(name)})).click()""")


def check_sorting(page):
    sad = [float(v) for v in column(page, "unknown/sad")]
    assert sad == sorted(sad, reverse=True), sad
    click_head(page, "unknown/sad")
    assert [float(v) for v in column(page, "unknown/sad")] == sorted(sad)
    click_head(page, "index")
    assert column(page, "index") == [str(i) for i in range(12)]
    click_head(page, "unknown/mse")
    mse = column(page, "unknown/mse")
    assert mse[-1] == "" and float(mse[0]) == max(float(v) for v in mse[:-1]), mse
    click_head(page, "image_name")
    assert column(page, "image_name") == [f"image <{i}>" for i in range(12)]


def check_viewer(page):
    page.evaluate("document.querySelectorAll('.zoom')[1].click()")
    shown = "[document.querySelector('dialog').open, document.querySelector('dialog img').alt]"
    captions = page.evaluate("[...document.querySelectorAll('.zoom img')].map(i => i.alt)")
    assert page.evaluate(shown) == [True, captions[1]]
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        page.call("Input.dispatchKeyEvent", type="keyDown", key=key)
    assert page.evaluate(shown) == [True, captions[2]]
    page.call("Input.dispatchKeyEvent", type="keyDown", key="Escape", windowsVirtualKeyCode=27)
    assert page.evaluate("document.querySelector('dialog').open") is False


def main():
    subprocess.run([PROGRAM, "run"], check=True)
    with open("run/results.json", encoding="utf-8") as f:
        results = json.load(f)
    for width in (1280, 400):
        page = Browser(width, 900)
        page.open("run/report.html")
        page.evaluate("document.querySelectorAll('img').forEach(i => { i.loading = 'eager'; })")
        page.evaluate("Promise.all([...document.images].map(i => i.decode())).then(() => true)")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        check_markup(page)
        check_content(page, results)
        check_sorting(page)
        check_viewer(page)
        check_quiet(page)
        page.close()
    print("report.html: quiet, self-contained, sorted and enlarged in Chromium at 1280 and 400 pixels")


if __name__ == "__main__":
    main()
