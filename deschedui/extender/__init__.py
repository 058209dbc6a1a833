"""The extender wire format and the HTTP client that asks one (protocols: "Calling an extender").

Import from the modules: `config` and `outcomes` are pure, `client` alone imports httpx.
"""
