"""A sandbox server of our own for the API's checks: free port, private data directory, gone when the check ends however it ends."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

START_SECONDS_MAX = 600


def say(text):
    print(text, flush=True)


class Sandbox:
    """`with Sandbox(target, name) as sandbox:` runs `rigmark serve`, and beside it what `run` starts; all of it is stopped at the end."""

    def __init__(self, target, name, demo=False):
        self.program = str(Path(target) / "debug" / "rigmark")
        self.folder = Path(target) / name
        self.data = self.folder / "data"
        self.demo = demo
        self.children = []
        self.url = None

    def __enter__(self):
        # Ctrl-C reaches us as an exception, and through it `__exit__`; a plain TERM does the same.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        self.folder.mkdir(parents=True, exist_ok=True)
        self._forget()
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for child in reversed(self.children):
            if child.poll() is None:
                child.terminate()
                try:
                    child.wait(30)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
        self._forget()

    def run(self, *arguments, log):
        """Starts `rigmark` with these arguments; its output goes to the file `log` in our folder, whose path is returned."""
        path = self.folder / log
        environment = {name: value for name, value in os.environ.items() if not re.match("RIGMARK_|DATABASE_|REDIS_|STRIPE_", name)}
        with path.open("wb") as out:
            # A session of its own: Ctrl-C is for us, who stop the children in order.
            child = subprocess.Popen([self.program, *arguments], stdout=out, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
        self.children.append(child)
        return path, child

    def wait_for(self, path, child, pattern, seconds_max=START_SECONDS_MAX):
        """The match of `pattern` in what the child has written."""
        until = time.monotonic() + seconds_max
        while time.monotonic() < until:
            text = path.read_text(errors="replace")
            found = re.search(pattern, text)
            if found:
                return found
            if child.poll() is not None:
                break
            time.sleep(0.2)
        sys.exit(f"{path} does not say {pattern}:\n{path.read_text(errors='replace')[-2000:]}")

    def admin_grant(self, handle):
        subprocess.run([self.program, "admin", "grant", handle, "--data-dir", str(self.data)], check=True, stdout=subprocess.DEVNULL)

    def engine(self, model):
        """A simulated engine; its address."""
        path, child = self.run("simulate-engine", "--bind", "127.0.0.1:0", "--model", model, "--hardware", "rtx-4090", log="engine.log")
        return self.wait_for(path, child, r"(http://\S+) serves").group(1)

    def _start(self):
        arguments = ["serve", "--bind", "127.0.0.1:0", "--data-dir", str(self.data)] + (["--demo"] if self.demo else [])
        say("api: starting a sandbox" + (" with the demo's data (about a minute)" if self.demo else ""))
        path, child = self.run(*arguments, log="server.log")
        self.url = self.wait_for(path, child, r"serves (http://\S+)").group(1)
        say(f"api: the sandbox is {self.url}, its log {path}")

    def _forget(self):
        if self.data.exists():
            subprocess.run(["scripts/reset.sh", str(self.data)], check=True, stdout=subprocess.DEVNULL)


class Caller:
    """Somebody who calls the API by hand, to set the stage."""

    def __init__(self, url, token=None):
        self.http = httpx.Client(base_url=url, timeout=60)
        self.token = token

    def call(self, method, path, body=None, key=None):
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if key:
            headers["Idempotency-Key"] = key
        answer = self.http.request(method, path, json=body, headers=headers)
        if answer.is_error:
            sys.exit(f"{method} {path}: {answer.status_code} {answer.text}")
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return answer.json() if is_json else answer.text

    def get(self, path):
        return self.call("GET", path)

    def post(self, path, body=None, key=None):
        return self.call("POST", path, body, key)


def register(url, handle, password="fuzz-" + "x" * 20):
    """A new account's caller, and what signing in answered."""
    answer = Caller(url).post("/api/v1/auth/register", {"email": f"{handle}@fuzz.example", "password": password, "handle": handle})
    return Caller(url, answer["access_token"]), answer
