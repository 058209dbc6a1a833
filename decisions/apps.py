"""The application of deschedui: records, decides, shows."""

from django.apps import AppConfig


class DecisionsConfig(AppConfig):
    """Loads the Celery application, so that ``shared_task`` finds its broker in every process; watches rights."""

    name = "decisions"
    verbose_name = "Decisions"

    def ready(self) -> None:
        from decisions import checks  # noqa: F401, PLC0415 - for its side effect: it registers them
        from decisions.services import rights  # noqa: PLC0415 - models are loaded by now, not before
        from decisions.web import signins  # noqa: PLC0415 - the same
        from deschedui import celery  # noqa: F401, PLC0415 - for its side effect, after Django is ready

        rights.watch()
        signins.watch()
