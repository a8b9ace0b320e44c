"""An HTTP service that numbers orders. POST /orders with {"customer": "Ada"} answers
{"id": "123…", "number": 1, "customer": "Ada"}. The ID and the number come from tickflake,
through an ordinary Redis client.

    python3 orders.py [PORT [URL]]
"""

import json
import random
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import redis

port = int(sys.argv[1]) if len(sys.argv) > 1 else 8082
url = sys.argv[2] if len(sys.argv) > 2 else "redis://127.0.0.1:6380"

# The server answers within its own timeout, 2 seconds by default.
tickflake = redis.Redis.from_url(url, decode_responses=True, socket_timeout=5, socket_connect_timeout=1)


def passing(error):
    """Whether the same call may succeed later."""
    if isinstance(error, redis.AuthenticationError):
        return False
    if isinstance(error, (redis.ConnectionError, redis.TimeoutError)):  # LOADING is a ConnectionError
        return True
    return str(error).startswith("TRYAGAIN ") or type(error).__name__ == "TryAgainError"


def retry(call, *args):
    """Repeats a call for up to ten seconds. That is safe: a number whose answer was lost is
    never issued again. It is a gap."""
    end = time.monotonic() + 10
    wait = 0.01
    while True:
        try:
            return call(*args)
        except redis.RedisError as error:
            if not passing(error) or time.monotonic() > end:
                raise
        time.sleep(wait * random.uniform(0.5, 1))
        wait = min(2 * wait, 0.5)


class Handler(BaseHTTPRequestHandler):
    timeout = 60  # seconds for a request to arrive

    def do_POST(self):
        if self.path != "/orders":
            return self.answer(404, {"error": "want POST /orders"})
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > 10_000:
            return self.answer(413, {"error": "want a body of at most 10000 bytes"})
        try:
            customer = json.loads(self.rfile.read(int(length)))["customer"]
            if not isinstance(customer, str):
                raise TypeError("no customer")
        except (ValueError, KeyError, TypeError):
            return self.answer(400, {"error": 'want {"customer": "…"}'})
        try:
            order = {"id": retry(tickflake.execute_command, "ID"), "number": retry(tickflake.incr, "orders"), "customer": customer}
        except redis.RedisError as error:
            print("order:", error, file=sys.stderr, flush=True)
            return self.answer(503, {"error": "no number, try again later"})
        self.answer(200, order)

    def answer(self, status, body):
        text = (json.dumps(body, ensure_ascii=False) + "\n").encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
server.daemon_threads = False  # server_close waits for the requests that run
# shutdown waits for serve_forever, so it runs beside it.
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
print(f"listening on http://127.0.0.1:{server.server_port}", file=sys.stderr, flush=True)
server.serve_forever()
server.server_close()
