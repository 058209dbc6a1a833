"""A small Kubernetes API server for the demo and for tests, held to the real one by `tests/truth`.

It speaks the parts of the API that deschedui, its users' kubectl and its tests use: discovery, reads with selectors
and pages, watch, writes with conflicts and preconditions, the Eviction and Binding subresources. It keeps everything
in memory.
"""
