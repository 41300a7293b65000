"""A page in a real browser, and what is asked of it."""

import contextlib
import os
import time

from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

# A bound against hanging, not a promise: for one thing to be seen.
PATIENCE = 60


def browser(folder):
    options = webdriver.ChromeOptions()
    profile = os.path.join(folder, f"profile-{time.monotonic_ns()}")
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1300,1100", "--disable-background-networking", f"--user-data-dir={profile}"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def eventually(what, look):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            found = look()
        except (NoSuchElementException, StaleElementReferenceException, LookupError):
            found = None
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


# What was asked last: when it began and ended, in milliseconds of the page, and how it was answered.
ASKED_LAST = """
const asked = performance.getEntriesByType("resource").slice(-12).map((one) => `${Math.round(one.startTime)}-${Math.round(one.responseEnd)} ${one.responseStatus} ${one.name}`);
return [...asked, `now ${Math.round(performance.now())}`].join("\\n");
"""


@contextlib.contextmanager
def telling(page):
    """Where something fails in it, what the page shows then is told, what it asked and what the browser complains of."""
    try:
        yield
    except AssertionError:
        print(f"The page shows:\n{text(page, 'body')}\nIt asked:\n{page.execute_script(ASKED_LAST)}")
        for entry in page.get_log("browser"):
            print(entry["level"], entry["message"])
        raise


def count(page, selector):
    return len(page.find_elements(By.CSS_SELECTOR, selector))


def text(page, selector):
    """Of the first one, as it is read at one moment."""
    return page.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)


BUTTON = """
const [selector, words] = arguments;
return [...document.querySelectorAll(selector)].find((one) => one.checkVisibility() && one.innerText.trim() === words) ?? null;
"""
BUTTON_WITH = """
const [selector, words] = arguments;
return [...document.querySelectorAll(selector)].find((one) => words.every((word) => one.innerText.includes(word))) ?? null;
"""


def found(page, script, within, words):
    """As it is there at one moment: what is beside it may be drawn anew."""
    one = page.execute_script(script, f"{within} button", words)
    if not one:
        raise LookupError(f"no button {words!r}")
    return one


def button(page, words, within="main section:not([hidden])"):
    return found(page, BUTTON, within, words)


def reach(what, find):
    """Clicks on what may be drawn anew while somebody reaches for it."""
    def is_clicked():
        find().click()
        return True
    eventually(what, is_clicked)


def click(page, words):
    reach(f"a button {words!r}", lambda: button(page, words))


def press(page, what, words, within):
    """The first button there with these words in it."""
    reach(what, lambda: found(page, BUTTON_WITH, within, words))


def type_keys(page, *keys):
    """To whatever has the focus when they come: it may be drawn anew."""
    webdriver.ActionChains(page).send_keys(*keys).perform()


def hangs(*_):
    raise TimeoutError("the session is not over in time")
