"""A cluster with nodes and a browser, of a program's own: both are gone when it ends, however it does."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

# A bound against hanging, not a promise.
PATIENCE = 120


def eventually(what, look, patience=PATIENCE):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}")


@contextlib.contextmanager
def opened(kubarium, size, *flags):
    """A cluster, and a browser: a function that runs programs in its environment, and one that opens its page."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="kubarium-page-") as folder, contextlib.ExitStack() as ends:
        environment = dict(os.environ, HOME=folder, KUBARIUM_STATE_DIR=f"{folder}/state",
                           KUBECONFIG=f"{folder}/kubeconfig", KUBARIUM_NAME="page", KUBARIUM_END_WITH_PARENT="1")

        def run(*words, check=True):
            done = subprocess.run(words, env=environment, text=True, capture_output=True)
            if check and done.returncode:
                raise RuntimeError(f"{words}: {done.stderr}")
            return done.stdout

        log = ends.enter_context(open(f"{folder}/log", "w", encoding="utf-8"))
        up = subprocess.Popen([kubarium, "up", *flags, "--kubeconfig", environment["KUBECONFIG"]], env=environment,
                              stdout=log, stderr=log, start_new_session=True)
        ends.callback(end, up)
        link = lambda: up.poll() is None and run(kubarium, "ui", check=False).strip()

        def page():
            browser = browse(folder, size)
            ends.callback(browser.quit)
            browser.get(eventually("the cluster", link))
            return browser

        yield run, page


def end(process):
    """All of its group, at first politely."""
    for sign in [signal.SIGTERM, signal.SIGKILL]:
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, sign)
            process.wait(20)


def browse(folder, size):
    options = webdriver.ChromeOptions()
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--hide-scrollbars", f"--window-size={size}", f"--user-data-dir={folder}/profile"]:
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def processes_of(browser):
    """Chromium's processes: all that the driver has started."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", encoding="utf-8") as stat:
            parents[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
    found = [browser.service.process.pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def used(process):
    """Seconds of processor time, of its threads."""
    with open(f"/proc/{process}/stat", encoding="utf-8") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kind(process):
    with open(f"/proc/{process}/cmdline", encoding="utf-8") as line:
        words = line.read().replace("\0", " ").split()
    return next((word.split("=")[1] for word in words if word.startswith("--type=")), "browser")


class Spent:
    """The processor time of Chromium's processes while this is open: seconds by their kind."""

    def __init__(self, browser):
        self.browser = browser
        self.by_kind = {}

    def __enter__(self):
        self.before = dict(self.now())
        return self

    def __exit__(self, *_):
        for one, seconds in self.now():
            with contextlib.suppress(OSError):
                name = kind(one)
                self.by_kind[name] = self.by_kind.get(name, 0) + seconds - self.before.get(one, 0)

    def now(self):
        """Of each process that is there. What has ended, as a spare renderer does after a while, is left out."""
        for one in processes_of(self.browser):
            with contextlib.suppress(OSError):
                yield one, used(one)
