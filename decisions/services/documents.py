"""The document of a cycle, for the edges; its shape lies with the models, so that queries may read it too."""

from decisions.models.documents import Document, Filtered, Nominated, ReasonCount, build, pack, unpack

__all__ = ["Document", "Filtered", "Nominated", "ReasonCount", "build", "pack", "unpack"]
