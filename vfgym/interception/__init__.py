"""The model of a running episode as an HTTP server on this machine, for programs that bring their own client.

`open_endpoint` gives an episode an address. A program asks there as it would ask a provider, in any of four formats (`openai_chat`,
`openai_responses`, `anthropic_messages`); each question becomes one `Request`, which whoever opened the endpoint answers with a
`vfgym.messages.Response`. Programs on this machine reach it by TCP, and a sandbox without network by a unix socket.
"""

from vfgym.interception.endpoint import PROGRAM_VARIABLES, Endpoint, check_api, open_endpoint
from vfgym.interception.wire import Request, Wire

__all__ = ["PROGRAM_VARIABLES", "Endpoint", "Request", "Wire", "check_api", "open_endpoint"]
