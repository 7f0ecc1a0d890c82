"""What the database itself refuses, whoever asks: to change or delete postings, operators' acts and past prices.

On PostgreSQL it also refuses, at commit, a transfer that does not sum to zero. SQLite has no check at commit: there
`billing.posting` and `check_ledger` are what holds that rule (docs/ledger.md). A migration puts the guards up.
"""

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

LEDGER_TABLES = ("billing_transfer", "billing_posting")
AUDIT_TABLES = ("billing_operatoraction",)
RATE_TABLES = ("billing_rate", "billing_fee")
APPEND_ONLY_TABLES = (*LEDGER_TABLES, *AUDIT_TABLES, *RATE_TABLES)

_SQLITE_PUT_UP = """
CREATE TRIGGER {table}_refuses_{event} BEFORE {event} ON {table}
BEGIN
    SELECT RAISE(ABORT, '{table} is append-only: a correction is a new row');
END
"""

_POSTGRESQL_FUNCTIONS = """
CREATE OR REPLACE FUNCTION billing_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: a correction is a new row', TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE OR REPLACE FUNCTION billing_check_transfer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT SUM(amount_microusd) FROM billing_posting WHERE transfer_id = NEW.transfer_id) <> 0 THEN
        RAISE EXCEPTION 'transfer % does not sum to zero', NEW.transfer_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
"""

_POSTGRESQL_REFUSE = """
CREATE TRIGGER {table}_refuses_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse_change()
"""

# Row by row but only at commit, so that the postings of a transfer may come in several statements.
_POSTGRESQL_SUM_ZERO = """
CREATE CONSTRAINT TRIGGER billing_posting_sums_to_zero AFTER INSERT ON billing_posting
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION billing_check_transfer()
"""


def guards_put_up(connection: BaseDatabaseWrapper, tables: Sequence[str] = APPEND_ONLY_TABLES) -> None:
    """A migration names the tables that there are at its time; whoever names none means all of today's."""
    if connection.vendor == "postgresql":
        statements = [
            _POSTGRESQL_FUNCTIONS,
            *(_POSTGRESQL_REFUSE.format(table=table) for table in tables),
            *([_POSTGRESQL_SUM_ZERO] if "billing_posting" in tables else []),
        ]
    else:
        statements = [
            _SQLITE_PUT_UP.format(table=table, event=event)
            for table in tables
            for event in ("update", "delete")
        ]
    _execute(connection, statements)


def guards_take_down(connection: BaseDatabaseWrapper, tables: Sequence[str] = APPEND_ONLY_TABLES) -> None:
    """For migrations that must rewrite these tables, and for test suites that empty them."""
    if connection.vendor == "postgresql":
        statements = [f"DROP TRIGGER {table}_refuses_change ON {table}" for table in tables]
        if "billing_posting" in tables:
            statements.append("DROP TRIGGER billing_posting_sums_to_zero ON billing_posting")
    else:
        statements = [
            f"DROP TRIGGER {table}_refuses_{event}" for table in tables for event in ("update", "delete")
        ]
    _execute(connection, statements)


def _execute(connection: BaseDatabaseWrapper, statements: list[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
