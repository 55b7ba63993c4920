"""Formats: conversations, tools and sampling arguments as each API takes them, and its answers as the library has them."""
