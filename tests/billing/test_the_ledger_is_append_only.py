"""The database itself refuses what no code should ever try."""

import pytest
from django.db import IntegrityError, connection, models, transaction
from django.db.models import F

from billing.guards import guards_put_up, guards_take_down
from billing.models import Account, Posting, Transfer
from billing.services import hold_open
from tests.billing.cast import USD, buyer

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _something_posted():
    hold_open(user=buyer(), reference="job:1", amount_microusd=USD)


@pytest.mark.parametrize("model", [Posting, Transfer])
def test_what_was_posted_is_not_deleted(model: type[models.Model]):
    rows = model._default_manager.all()
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        rows._raw_delete(rows.db)
    assert rows.exists()


def test_what_was_posted_is_not_changed():
    with pytest.raises(IntegrityError, match="billing_posting is append-only"), transaction.atomic():
        Posting.objects.update(amount_microusd=F("amount_microusd") * 2)
    with pytest.raises(IntegrityError, match="billing_transfer is append-only"), transaction.atomic():
        Transfer.objects.update(memo="something else")


def test_an_account_with_postings_is_not_deleted():
    with pytest.raises(models.ProtectedError):
        Account.objects.get(kind=Account.Kind.WALLET).delete()


def test_only_a_source_goes_below_zero():
    with pytest.raises(IntegrityError, match="account_is_not_overdrawn"), transaction.atomic():
        Account.objects.filter(kind=Account.Kind.WALLET).update(balance_microusd=-1)
    Account.objects.filter(kind=Account.Kind.SOURCE).update(balance_microusd=-1)


def test_a_posting_moves_something_and_touches_an_account_once():
    posting = Posting.objects.all()[0]
    with pytest.raises(IntegrityError, match="posting_moves_something"), transaction.atomic():
        Posting.objects.create(transfer=Transfer.objects.all()[0], account=posting.account, amount_microusd=0)
    with pytest.raises(IntegrityError), transaction.atomic():
        Posting.objects.create(transfer=posting.transfer, account=posting.account, amount_microusd=1)


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no check at commit")
def test_a_transfer_that_does_not_sum_to_zero_is_not_committed():
    transfer = Transfer.objects.create(idempotency_key="lopsided", reason="hold", asked="hold")
    with transaction.atomic():
        Posting.objects.create(transfer=transfer, account=Account.objects.all()[0], amount_microusd=1)
        with pytest.raises(IntegrityError, match="does not sum to zero"):
            connection.check_constraints()
        transaction.set_rollback(True)


def test_the_guards_can_be_taken_down_for_a_migration_and_put_up_again():
    connection.check_constraints()  # nothing may be due at commit while the guards change
    guards_take_down(connection)
    Transfer.objects.update(memo="rewritten by a migration")
    guards_put_up(connection)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        Transfer.objects.update(memo="something else")
