"""A cluster as a process that belongs to this one: started with the first use, ended with it."""

import atexit
import base64
import datetime
import json
import os
import re
import select
import shutil
import ssl
import subprocess
import sys
import sysconfig
import tempfile
import urllib.error
import urllib.request

# How long a start or an end may take. Not a promise of speed: a bound against hanging.
PATIENCE = 60.0
# The longest that a socket waits: more milliseconds do not fit into what poll takes.
LONGEST = 24 * 60 * 60.0
# What is done to a whole cluster.
HANDLES = "/kubarium/v1"


class KubariumError(Exception):
    """The program could not be found, did not start, or refused what it was asked; its words say why."""


class Refused(KubariumError):
    """The server's answer to a request, a `Status` as it is on the wire."""

    def __init__(self, code, status):
        message = status.get("message") if isinstance(status, dict) else None
        super().__init__(message or f"the server answered {code}: {status}")
        self.code = code
        self.status = status


def program():
    """The `kubarium` that is run: `$KUBARIUM`, the one of the wheel, or the one on PATH."""
    named = os.environ.get("KUBARIUM")
    if named:
        return named
    # Beside this Python, or where `pip install --target` puts it.
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    folders.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))
    if hasattr(sysconfig, "get_preferred_scheme"):
        folders.append(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    for folder in folders:
        found = os.path.join(folder, "kubarium")
        if os.access(found, os.X_OK):
            return found
    found = shutil.which("kubarium")
    if found:
        return found
    raise KubariumError("no program kubarium beside this Python nor on PATH; pip install kubarium, or set KUBARIUM")


class Access:
    """Requests to one server, in the name of one kubeconfig."""

    def __init__(self, kubeconfig, folder):
        self.kubeconfig = kubeconfig
        self._folder = folder
        with open(kubeconfig, encoding="utf-8") as file:
            text = file.read()
        self.server = _entry(text, "server")
        self._tls = _tls(text, folder)

    def request(self, method, path, body=None, content_type="application/json", timeout=PATIENCE):
        """Sends a request as the administrator; returns what the answer holds, JSON decoded.

        Waits `timeout` seconds for it. Raises `Refused` for every answer that is not a success.
        """
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data=data, method=method)
        request.add_header("Accept", "application/json")
        if data is not None:
            request.add_header("Content-Type", content_type)
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=timeout) as response:
                return _decoded(response)
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, _decoded(error)) from None

    def settle(self, quiet="0s", ignore=(), within="30s"):
        """Returns when nothing moves any more; raises `Refused` with what does, if that takes too long."""
        wanted = {"quiet": quiet, "ignore": list(ignore), "within": within}
        self.request("POST", f"{HANDLES}/settle", wanted, timeout=_patience(within))

    def fork(self, name=None, resource_version=None):
        """Makes a second cluster with the same past, or that until a resourceVersion. End it with `stop`."""
        wanted = {"name": name, "resourceVersion": resource_version}
        made = self.request("POST", f"{HANDLES}/forks", {key: value for key, value in wanted.items() if value is not None})
        return Fork(self, made, self._folder)

    def environment(self):
        """The variables with which `kubarium` and `kubectl` mean this cluster and no other."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("KUBARIUM_")}
        own["KUBARIUM_STATE_DIR"] = os.path.join(self._folder, "state")
        own["KUBECONFIG"] = self.kubeconfig
        return own

    def kubarium(self, *words, input=None):
        """Runs `kubarium` with these words for this cluster; returns what it prints."""
        return _run([program(), *words], self.environment(), input)

    def kubectl(self, *words, input=None):
        """Runs the kubectl on PATH with these words; returns what it prints.

        A single text is split at blanks: `cluster.kubectl("get pods -A")`.
        """
        if len(words) == 1 and " " in words[0]:
            words = words[0].split()
        return _run(["kubectl", *words], self.environment(), input)


class Fork(Access):
    """A second cluster with the same past, on a port of its own. Made by `Access.fork`."""

    def __init__(self, parent, made, folder):
        self.name = made["name"]
        self._parent = parent
        # A name is one parent's alone, and a fork's forks lie beside it. Nobody else may read the file.
        handle, kubeconfig = tempfile.mkstemp(prefix=f"fork-{self.name}-", dir=folder)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(made["kubeconfig"])
        super().__init__(kubeconfig, folder)

    def stop(self):
        """Ends it; its parent goes on. Nothing happens if it has ended."""
        parent, self._parent = self._parent, None
        if parent is None:
            return
        try:
            os.remove(self.kubeconfig)
        except FileNotFoundError:
            return  # Its parent has ended, and it with its parent.
        try:
            parent.request("DELETE", f"{HANDLES}/forks/{self.name}")
        except Refused as refused:
            if refused.code != 404:
                raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Time:
    """The time of a cluster that was started with `--clock stepped`: it stands until it is let pass."""

    def __init__(self, cluster):
        self.cluster = cluster

    def now(self):
        """What it is, as a `datetime`."""
        text = self.cluster.request("GET", f"{HANDLES}/time")["now"]
        return datetime.datetime.fromisoformat(re.sub(r"(\.\d{1,6})\d*", r"\1", text.replace("Z", "+00:00")))

    def pass_(self, duration):
        """Lets it pass, as "1h" or "30d", from wake to wake: everybody does what is due in between."""
        wanted = {"duration": duration}
        return self.cluster.request("POST", f"{HANDLES}/time/pass", wanted, timeout=_patience(duration))

    def until(self, obj, condition, namespace="default", within=None):
        """Lets it pass until an object is as wanted: `until("deploy/web", "Available")`, or as kubectl wait has it.

        For an hour at most if nobody says otherwise; for 30 real seconds where the clock is not stepped.
        """
        wanted = {"object": obj, "namespace": namespace, "for": condition, "within": within}
        return self.cluster.request("POST", f"{HANDLES}/time/until", wanted, timeout=_patience(within or "1h"))


class Faults:
    """What goes wrong in a cluster on purpose."""

    def __init__(self, cluster):
        self.cluster = cluster
        self._added = []

    def add(self, **fault):
        """Adds a rule, as `add(verbs=["update"], resources=["configmaps"], answer={"code": 409})`; returns its name."""
        name = self.cluster.request("POST", f"{HANDLES}/faults", fault)["name"]
        self._added.append(name)
        return name

    def list(self):
        """All rules, and what they have hit."""
        return self.cluster.request("GET", f"{HANDLES}/faults")["faults"]

    def remove(self, name):
        """Removes a rule."""
        self.cluster.request("DELETE", f"{HANDLES}/faults/{name}")
        self._forget(name)

    def clear(self):
        """Removes the rules that were added here, as far as nobody else has."""
        for name in list(self._added):
            try:
                self.remove(name)
            except Refused as refused:
                if refused.code != 404:
                    raise
                self._forget(name)

    def _forget(self, name):
        if name in self._added:
            self._added.remove(name)


class Cluster(Access):
    """A cluster. `with Cluster() as cluster:` starts it and ends it.

    `flags` go to `kubarium up` as they are, `kubarium up --help` has them all.
    """

    def __init__(self, *flags):
        self._folder = tempfile.mkdtemp(prefix="kubarium-")
        self.kubeconfig = os.path.join(self._folder, "kubeconfig")
        self._process = None
        self._owner = os.getpid()
        _running.add(self)
        try:
            self._start(flags)
            super().__init__(self.kubeconfig, self._folder)
        except BaseException:
            self.stop()
            raise

    def _start(self, flags):
        ready, tell = os.pipe()
        command = [program(), "up", "--name", "test", "--kubeconfig", self.kubeconfig, "--ready-fd", str(tell), *flags]
        # Should this process be killed, the cluster does not stay.
        environment = {**self.environment(), "KUBARIUM_END_WITH_PARENT": "1"}
        try:
            with open(os.path.join(self._folder, "log"), "wb") as log:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                    pass_fds=[tell], start_new_session=True,
                )
        finally:
            os.close(tell)
        with open(ready, "rb", buffering=0) as ready:
            self._wait_until_ready(ready)

    def _wait_until_ready(self, ready):
        """A line says that everything answers; the end without one, that it never will."""
        readable, _, _ = select.select([ready], [], [], PATIENCE)
        if not readable:
            raise KubariumError(f"kubarium up is not ready after {PATIENCE:.0f} s:\n{self.log()}")
        if not ready.read(1):
            code = self._process.wait(PATIENCE)
            raise KubariumError(f"kubarium up ended with {code}:\n{self.log()}")

    def log(self):
        """What it has printed."""
        with open(os.path.join(self._folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def stop(self):
        """Ends it, and removes every file of it. Nothing happens if it has ended."""
        _running.discard(self)
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


# Those of this process that nobody has stopped yet.
_running = set()


@atexit.register
def _stop_all():
    """Whoever forgets to stop clusters leaves no file of them: they end with this process."""
    for cluster in list(_running):
        # A process that was forked from this one only seems to have it.
        if cluster._owner == os.getpid():
            cluster.stop()


def _run(command, environment, input):
    try:
        done = subprocess.run(command, env=environment, input=input, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise KubariumError(f"{command[0]} is not on PATH") from error
    if done.returncode != 0:
        raise KubariumError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def _patience(duration):
    """How long the answer to what may take so long is waited for: that, and as long as for every other."""
    units = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3}
    parts = re.findall(r"(\d+(?:\.\d+)?|\.\d+)(ms|[dhms])", duration)
    return min(PATIENCE + sum(float(number) * units[unit] for number, unit in parts), LONGEST)


def _decoded(response):
    body = response.read()
    if "json" in response.headers.get("Content-Type", ""):
        return json.loads(body)
    return body.decode("utf-8", "replace")


def _entry(text, name):
    """An entry of a kubeconfig as kubarium writes it: one of each, on a line of its own."""
    found = re.search(rf"^\s*(?:- )?{name}: *(\S+)\s*$", text, re.MULTILINE)
    return found.group(1).strip("'\"") if found else None


def _tls(text, folder):
    authority = _entry(text, "certificate-authority-data")
    if authority is None:
        return None
    context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
    pair = [_entry(text, f"client-{part}-data") for part in ("certificate", "key")]
    if None not in pair:
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".pem") as file:
            file.write(b"\n".join(map(base64.b64decode, pair)))
            file.flush()
            context.load_cert_chain(file.name)
    return context
