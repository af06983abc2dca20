#!/usr/bin/env python3
"""The Python head node of the interop test: the DiffusionServer of an sglang release, found by path and left as it is.

    head_node.py [--timeout SECONDS] [--policy NAME] [--capacity N] FOLDER ROLE=ENDPOINT ... results ROLE=ENDPOINT ...

FOLDER holds the release's files, flat, as setup.sh puts them there. The first ROLE=ENDPOINT, one for each worker, say
where the server sends its work; those after the word `results`, one for each role, where it takes their results. Roles
are encoder, denoiser and decoder, or prompt_encoder, image_encoder, denoiser and decoder.

What the server imports and does not need for this is replaced by stand-ins: a tokenizer, metrics, the classes of a
request and its result, and the making of sockets.

Lines on stdout are JSON objects, each with the key `event`:

    {"event":"ready"}                                  the server's sockets are bound
    {"event":"registered","peers":{ROLE:N}}            answers {"await":{ROLE:N}} when so many workers have registered
    {"event":"reply","request_id":..,"error":TEXT or null,"output":{"dtype":..,"shape":..,"sha256":..} or null}
    {"event":"stats","stats":{..}}                     answers {"stats":true}: DiffusionServer.get_stats()

Lines on stdin are JSON objects: {"request_id":TEXT} with an optional "image_path" sends a pickled Req from a client of
its own, a REQ socket; {"await":..} and {"stats":true} are above. The end of stdin stops the server. The timeout (60
seconds) is the server's own for a request, and that of every wait here. Exit status: 0 done, 2 wrong arguments, 3 timed out.
"""

import argparse
import dataclasses
import hashlib
import importlib.util
import json
import os
import pathlib
import pickle
import sys
import threading
import time
import types

import zmq

PACKAGE = "sglang.multimodal_gen.runtime"
FILES = {
    f"{PACKAGE}.disaggregation.dispatch_policy": "dispatch_policy.py",
    f"{PACKAGE}.disaggregation.request_state": "request_state.py",
    f"{PACKAGE}.disaggregation.roles": "roles.py",
    f"{PACKAGE}.disaggregation.transport.codec": "codec.py",
    f"{PACKAGE}.disaggregation.transport.protocol": "protocol.py",
    f"{PACKAGE}.disaggregation.orchestrator": "orchestrator.py",
}


# ---- stand-ins ----


@dataclasses.dataclass
class Req:
    request_id: str | None = None
    image_path: object = None
    is_warmup: bool = False
    prompt: str = ""


@dataclasses.dataclass
class OutputBatch:
    output: object = None
    audio: object = None
    audio_sample_rate: int | None = None
    error: str | None = None
    metrics: object = None
    metrics_list: object = None
    peak_memory_mb: float = 0.0
    usage: object = None


class Nothing:
    """Takes everything and does nothing."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, _name):
        return lambda *_, **__: None


def open_socket(context, socket_type, endpoint, bind, max_bind_retries=10, same_port=False):
    socket = context.socket(socket_type)
    socket.setsockopt(zmq.LINGER, 0)
    for option in (zmq.SNDHWM, zmq.RCVHWM):
        socket.setsockopt(option, 0)
    if bind:
        socket.bind(endpoint)
    else:
        socket.connect(endpoint)
    return socket, endpoint


def stand_in(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module


def load(folder):
    for name in ("sglang", "sglang.multimodal_gen", PACKAGE, f"{PACKAGE}.disaggregation", f"{PACKAGE}.disaggregation.transport"):
        stand_in(name, __path__=[])
    for name in ("observability", "pipelines_core", "utils"):
        stand_in(f"{PACKAGE}.{name}", __path__=[])
    stand_in("transformers", AutoProcessor=Nothing)
    stand_in(f"{PACKAGE}.observability.metrics", DiffusionMetrics=Nothing, init_metrics=Nothing)
    stand_in(f"{PACKAGE}.pipelines_core.schedule_batch", Req=Req, OutputBatch=OutputBatch)
    stand_in(f"{PACKAGE}.utils.common", get_zmq_socket=open_socket)
    stand_in(f"{PACKAGE}.utils.perf_logger", MemorySnapshot=Nothing, RequestMetrics=Nothing)
    for name, file in FILES.items():
        spec = importlib.util.spec_from_file_location(name, pathlib.Path(folder, file))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[f"{PACKAGE}.disaggregation.orchestrator"].DiffusionServer


# ---- talking to the test ----

printing = threading.Lock()


def say(event, **members):
    with printing:
        print(json.dumps({"event": event, **members}), flush=True)


def describe(tensor):
    if tensor is None:
        return None
    data = tensor.contiguous().numpy().tobytes()
    dtype = str(tensor.dtype).replace("torch.", "")
    return {"dtype": dtype, "shape": list(tensor.shape), "sha256": hashlib.sha256(data).hexdigest()}


def client(context, frontend, request, timeout):
    socket = context.socket(zmq.REQ)
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect(frontend)
    req = Req(request_id=request["request_id"], image_path=request.get("image_path"), prompt=request.get("prompt", ""))
    socket.send(pickle.dumps([req]))
    # Longer than the server's own: its answer to a request that timed out is to arrive.
    if not socket.poll(int((timeout + 10) * 1000)):
        say("reply", request_id=request["request_id"], error="no reply at all", output=None)
    else:
        batch = pickle.loads(socket.recv())
        say("reply", request_id=request["request_id"], error=batch.error, output=describe(batch.output))
    socket.close()


def await_peers(server, wanted, timeout):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        pools = server.get_stats()["worker_pools"]
        peers = {role: pools[role]["registered_peers"] for role in wanted}
        if peers == wanted:
            say("registered", peers=peers)
            return
        time.sleep(0.01)
    print(f"head_node.py: {peers} registered instead of {wanted}", file=sys.stderr)
    os._exit(3)


def pairs(arguments):
    found = {}
    for argument in arguments:
        role, _, endpoint = argument.partition("=")
        found.setdefault(role, []).append(endpoint)
    return found


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--policy", default="round_robin")
    parser.add_argument("--capacity", type=int, default=4)
    parser.add_argument("--frontend", required=True)
    parser.add_argument("folder")
    parser.add_argument("endpoints", nargs="+")
    arguments = parser.parse_args()
    if "results" not in arguments.endpoints:
        parser.error("no results")
    at = arguments.endpoints.index("results")
    work, results = pairs(arguments.endpoints[:at]), pairs(arguments.endpoints[at + 1 :])

    options = {}
    for role, endpoints in work.items():
        options[f"{role}_work_endpoints"] = endpoints
        options[f"{role}_result_endpoint"] = results[role][0]
    options.setdefault("encoder_work_endpoints", [])
    options.setdefault("encoder_result_endpoint", "")
    server = load(arguments.folder)(
        frontend_endpoint=arguments.frontend,
        dispatch_policy_name=arguments.policy,
        timeout_s=arguments.timeout,
        encoder_capacity=arguments.capacity,
        denoiser_capacity_per_worker=arguments.capacity,
        decoder_capacity=arguments.capacity,
        **options,
    )
    server.start()
    if not server.wait_ready(arguments.timeout):
        return 3
    say("ready")

    context = zmq.Context()
    clients = []
    for line in sys.stdin:
        command = json.loads(line)
        if "await" in command:
            await_peers(server, command["await"], arguments.timeout)
        elif "stats" in command:
            say("stats", stats=server.get_stats())
        else:
            thread = threading.Thread(target=client, args=(context, arguments.frontend, command, arguments.timeout))
            thread.start()
            clients.append(thread)
    for thread in clients:
        thread.join()
    server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
