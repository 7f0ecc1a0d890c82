"""The database itself keeps the ledger append-only; `billing.guards` says how."""

from typing import Any

from django.db import migrations

from billing.guards import LEDGER_TABLES, guards_put_up, guards_take_down


def put_up(apps: Any, schema_editor: Any) -> None:
    guards_put_up(schema_editor.connection, LEDGER_TABLES)


def take_down(apps: Any, schema_editor: Any) -> None:
    guards_take_down(schema_editor.connection, LEDGER_TABLES)


class Migration(migrations.Migration):
    dependencies = [("billing", "0001_initial")]
    operations = [migrations.RunPython(put_up, take_down)]
