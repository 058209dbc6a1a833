"""The record is append-only: triggers refuse to change or delete what stands there (``decisions.guards``)."""

from django.db import migrations

from decisions.guards import DROP_FUNCTION, FUNCTION, guards


def put_up(_apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(FUNCTION, params=None)
    for guard in guards(schema_editor.connection.vendor):
        schema_editor.execute(guard.create, params=None)


def take_down(_apps, schema_editor):
    for guard in guards(schema_editor.connection.vendor):
        schema_editor.execute(guard.drop, params=None)
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(DROP_FUNCTION, params=None)


class Migration(migrations.Migration):
    dependencies = [("decisions", "0001_initial")]
    operations = [migrations.RunPython(put_up, take_down)]
