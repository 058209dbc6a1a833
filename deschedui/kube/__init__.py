"""Everything that speaks to an API server, and the only package that imports ``kubernetes``.

``client`` is the way in; ``eviction``, ``events``, ``owners``, ``lists``, ``answers``, ``redact`` and ``text`` decide
and hold no connection; ``wire``, ``config`` and ``budget`` are how, as whom and how fast.
"""
