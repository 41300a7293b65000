"""What stands where on the page: compared by structure and not by pixels, in light and dark, in wide and narrow
windows. What was read before is in tests/golden/page; KUBARIUM_UPDATE_GOLDEN=1 writes it anew."""

import os

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "page")
# Wide, and about as much as a terminal of 80 columns.
WINDOWS = {"wide": (1300, 1100), "narrow": (640, 1100)}
# What a page must be read in without being pushed to and fro (WCAG 1.4.10).
SMALLEST = 320
# So often the page is looked at until it is the same in light and dark.
LOOKS = 5

# The outline: landmarks, panels, headings and controls in their order, and how panels stand to each other. Of lists,
# tables, texts and drawings their name alone, for what is in them changes.
OUTLINE = r"""
const [CONTAINERS, LEAVES] = [
  "header,main,nav,aside,section,article,form,[role=tablist],[role=toolbar],[role=group],.columns,.bar,.map,.stepping,.own",
  "h1,h2,h3,button,select,input,textarea,output,ol,ul,dl,pre,svg,canvas,[role=region]",
];
const isSeen = (one) => one.checkVisibility() && one.getBoundingClientRect().width > 0 && one.getBoundingClientRect().height > 0;
const tidy = (words) => words.trim().replace(/\s+/g, " ").replace(/\bweb(-[a-z0-9]+)+\b/g, "web-*").replace(/#?\d+/g, "N");
const nameOf = (one) => tidy(one.getAttribute("aria-label") ?? one.closest("label")?.firstChild.textContent ?? (/^(H\d|BUTTON)$/.test(one.tagName) ? one.textContent : ""));
const roleOf = (one) => one.getAttribute("role") ?? (one.type === "range" || one.type === "checkbox" ? one.type : one.tagName.toLowerCase());
const standing = (one, before) => {
  if (!before) return "";
  const [a, b] = [before.getBoundingClientRect(), one.getBoundingClientRect()];
  return b.top >= a.bottom - 2 ? " below" : b.left >= a.right - 2 ? " beside" : " over";
};
const lines = [];
const walk = (parent, depth) => {
  let before = null;
  for (const one of parent.children) {
    if (!isSeen(one)) continue;
    const pad = "  ".repeat(depth);
    if (one.matches(CONTAINERS)) {
      lines.push(`${pad}${roleOf(one)} ${nameOf(one)}`.trimEnd() + (parent.matches("main,section,.columns") ? standing(one, before) : ""));
      walk(one, depth + 1);
      before = one;
    } else if (one.matches(LEAVES)) {
      const line = `${pad}${roleOf(one)} ${nameOf(one)}`.trimEnd();
      // Of many that are alike one stands for all.
      if (lines.at(-1) !== line) lines.push(line);
      before = one;
    } else {
      walk(one, depth);
    }
  }
};
walk(document.body, 0);
return lines;
"""

# What is cut off, and what lies over something else.
FAULTS = r"""
const faults = [];
const isSeen = (one) => one.checkVisibility() && one.getBoundingClientRect().width > 0;
const scrolls = (one) => one && one !== document.body && (/auto|scroll|hidden/.test(getComputedStyle(one).overflowX) || scrolls(one.parentElement));
const words = (one) => `${one.tagName.toLowerCase()} ${(one.getAttribute("aria-label") ?? one.textContent).trim().slice(0, 40)}`;
if (document.documentElement.scrollWidth > window.innerWidth) faults.push(`the page is ${document.documentElement.scrollWidth} wide`);
const all = [...document.querySelectorAll("h1,h2,h3,button,select,input,textarea,output,p,pre,canvas,[role=region],svg text")].filter(isSeen);
for (const one of all) {
  const { left, right } = one.getBoundingClientRect();
  if ((left < -1 || right > window.innerWidth + 1) && !scrolls(one.parentElement)) faults.push(`${words(one)} is outside of the window`);
}
const laid = all.filter((one) => !one.matches("canvas,pre,[role=region]") && !scrolls(one.parentElement));
const boxes = laid.map((one) => one.getBoundingClientRect());
for (let at = 0; at < laid.length; at += 1) {
  for (let other = at + 1; other < laid.length; other += 1) {
    if (laid[at].contains(laid[other]) || laid[other].contains(laid[at])) continue;
    const [a, b] = [boxes[at], boxes[other]];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    // Lines of a drawing are close to each other.
    if (wide > 2 && high > (laid[at].closest("svg") ? 4 : 2)) faults.push(`${words(laid[at])} lies over ${words(laid[other])}`);
  }
}
return faults;
"""


def emulate(page, scheme, size):
    feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
    resize(page, *WINDOWS[size])


def resize(page, wide, high):
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                         {"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": False})


def well_laid_out(page, view):
    """Everything is where it was, in the same order whatever the colours, nothing over something else or cut off."""
    for size in WINDOWS:
        compare(f"{view.replace(', ', '-')}-{size}.txt", settled(lambda: outlines(page, view, size), f"{view}, {size}"))
    for wide in [400, SMALLEST]:
        resize(page, wide, 1100)
        needs = page.execute_script("return document.documentElement.scrollWidth")
        assert needs <= wide, f"{view} is {needs} wide in a window of {wide}"
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def outlines(page, view, size):
    """Of the page in light and in dark, one after the other."""
    found = {}
    for scheme in ["light", "dark"]:
        emulate(page, scheme, size)
        found[scheme] = "\n".join(page.execute_script(OUTLINE)) + "\n"
        faults = page.execute_script(FAULTS)
        assert not faults, f"{view}, {size}, {scheme}: {faults}"
    return found


def settled(look, where):
    """The outline that both have: between two looks at a page that is alive a button may have come."""
    for _ in range(LOOKS):
        found = look()
        if found["light"] == found["dark"]:
            return found["light"]
    raise AssertionError(f"{where}: {found}")


def compare(name, outline):
    path = os.path.join(GOLDEN, name)
    if os.environ.get("KUBARIUM_UPDATE_GOLDEN") == "1":
        os.makedirs(GOLDEN, exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(outline)
    with open(path, encoding="utf-8") as file:
        wanted = file.read()
    assert outline == wanted, f"{name} is\n{outline}and was\n{wanted}KUBARIUM_UPDATE_GOLDEN=1 writes it anew"
