"""Runs redis-py for a test: reads one JSON request per line, does it, and writes one JSON
answer per line."""

import json
import sys

import redis
import redis.cluster

client = None


def connect(port, user=None, password=None, ca=None):
    global client
    client = redis.Redis(host="127.0.0.1", port=port, username=user, password=password, decode_responses=True, ssl=ca is not None, ssl_ca_certs=ca)
    client.ping()


def call(args):
    return client.execute_command(*args)


def method(args):
    return getattr(client, args[0])(*args[1:])


def pipeline(commands):
    with client.pipeline(transaction=False) as pipe:
        for args in commands:
            pipe.execute_command(*args)
        return pipe.execute(raise_on_error=False)


def cluster(port):
    redis.cluster.RedisCluster(host="127.0.0.1", port=port)


def describe(value):
    if value is None:
        return {"type": "null", "text": ""}
    if isinstance(value, list):
        return {"type": "array", "items": [describe(item) for item in value]}
    if isinstance(value, Exception):
        return {"type": "error", "class": type(value).__name__, "text": str(value)}
    return {"type": type(value).__name__, "text": str(value)}


for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = describe(globals()[request.pop("do")](**request))
    except Exception as error:
        answer = describe(error)
    print(json.dumps(answer), flush=True)
