"""The HTTP half of a WHIP client, and the conversation with the test: commands and answers are lines of JSON."""

import json
import sys
import threading
import traceback
import urllib.error
import urllib.request

HTTP_DEADLINE_SECS = 20


def say(**fields):
    """Answers the oldest command that has no answer yet."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def commands():
    """The commands of the test, until it closes the pipe."""
    for line in sys.stdin:
        yield json.loads(line)


def fault():
    return {"error": traceback.format_exc()[-2000:]}


def call(method, url, headers=None, body=None):
    """Status, headers and text of the answer, whatever the status is."""
    data = body.encode() if body is not None else None
    request = urllib.request.Request(url, data=data, headers=headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=HTTP_DEADLINE_SECS) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.headers, answer.read().decode()


class Whip:
    """One session at a WHIP server, with the key as a bearer token."""

    def __init__(self, server, key, attach=None):
        self.server = server
        self.authorization = {"Authorization": f"Bearer {key}"}
        self.attach = {"x-attach-config": attach} if attach else {}
        self.location = None
        self.etag = None
        self.run_id = None
        self.statuses = []
        self.lock = threading.Lock()

    def may_trickle(self):
        """Asked without a key, as a web page asks."""
        status, headers, _ = call("OPTIONS", f"{self.server}/v1/stream/whip")
        return status == 204 and "PATCH" in headers.get("Access-Control-Allow-Methods", "")

    def offer(self, sdp):
        """The answer of the server; raises when it refuses."""
        headers = {"Content-Type": "application/sdp", **self.authorization, **self.attach}
        status, headers, text = call("POST", f"{self.server}/v1/stream/whip", headers, sdp)
        if status != 201:
            raise RuntimeError(f"the offer was answered with {status}: {text}")
        self.location = self.server + headers["Location"]
        self.etag = headers["ETag"]
        self.run_id = headers["x-service-run-id"]
        return text

    def trickle(self, sdp, section, candidates):
        """Sends candidates of one media section; `sdp` has the credentials. An empty list says that there are no more."""
        lines = sdp.splitlines()
        find = lambda start: next(line for line in lines if line.startswith(start))
        fragment = [find("a=ice-ufrag:"), find("a=ice-pwd:")]
        sections = [at for at, line in enumerate(lines) if line.startswith("m=")]
        at = sections[section]
        fragment += [lines[at], next(line for line in lines[at:] if line.startswith("a=mid:"))]
        fragment += [f"a={candidate}" for candidate in candidates] or ["a=end-of-candidates"]
        headers = {"Content-Type": "application/trickle-ice-sdpfrag", "If-Match": self.etag, **self.authorization}
        with self.lock:
            status, _, _ = call("PATCH", self.location, headers, "\r\n".join(fragment) + "\r\n")
            self.statuses.append(status)

    def prompt(self, prompt):
        headers = {"Content-Type": "application/json", **self.authorization}
        return call("PATCH", f"{self.location}/prompt", headers, json.dumps({"prompt": prompt}))[0]

    def delete(self):
        return call("DELETE", self.location, self.authorization)[0]
