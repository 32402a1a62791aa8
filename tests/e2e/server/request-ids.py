#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Request ids of gRPC calls.

usage: request-ids.py PORT
"""
import sys
import grpc


def check(name, got):
    print(f"{'ok' if got else 'not ok'} - {name}")


def call(method, metadata):
    channel = grpc.insecure_channel("127.0.0.1:" + sys.argv[1])
    answer, rpc = b"", None
    try:
        answer, rpc = channel.unary_unary(method).with_call(b"", timeout=60, metadata=metadata)
        failed = None
    except grpc.RpcError as e:
        failed = rpc = e
    found = dict(rpc.initial_metadata()) | dict(rpc.trailing_metadata())
    return found.get("x-request-id"), failed


same, failed = call("/grpc.health.v1.Health/Check", [("x-request-id", "over-grpc")])
check("gRPC: an id is answered", same == "over-grpc" and not failed)
made, failed = call("/grpc.health.v1.Health/Check", [("x-request-id", "a b")])
check("gRPC: another one is made in place of a bad one", len(made or "") == 32 and not failed)
same, failed = call("/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export", [("x-request-id", "refused-grpc")])
check("gRPC: a refusal has it", same == "refused-grpc" and failed.code() == grpc.StatusCode.UNAUTHENTICATED)
