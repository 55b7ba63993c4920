"""The documented place of `RendererClient`."""

from vfgym.clients.providers.renderer import RendererClient as RendererClient
