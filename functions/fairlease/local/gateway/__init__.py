"""A stand-in for Supabase's API: PostgREST's RPCs behind the platform's key check.

For development and tests: it binds loopback only.
"""

from __future__ import annotations

from fairlease.local.gateway.app import create_app
from fairlease.local.gateway.config import GatewayConfig
from fairlease.local.gateway.faults import Fault, FaultKind, Faults
from fairlease.local.gateway.server import running_gateway, serve

__all__ = [
    "Fault",
    "FaultKind",
    "Faults",
    "GatewayConfig",
    "create_app",
    "running_gateway",
    "serve",
]
