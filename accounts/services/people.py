"""Sign-up and what people say about themselves."""

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, validate_email
from django.db import IntegrityError, transaction

from accounts.errors import EmailTaken, InvalidEmail, WeakPassword
from accounts.models import User
from accounts.selectors import devices_of
from accounts.services.checks import checked_address, checked_time_zone
from accounts.services.news import publish_device_news

EMAIL_MAX_LENGTH = 254  # of RFC 5321, and of the column


def user_sign_up(*, email: str, password: str, time_zone: str) -> User:
    """Make a person. Raises InvalidEmail, EmailTaken, WeakPassword or UnknownTimeZone."""
    email = User.objects.normalize_email(email.strip())
    try:
        validate_email(email)
        MaxLengthValidator(EMAIL_MAX_LENGTH)(email)
    except ValidationError:
        raise InvalidEmail("Give an e-mail address such as ada@example.org.", field="email") from None
    time_zone = checked_time_zone(time_zone)
    try:
        validate_password(password, User(email=email))
    except ValidationError as error:
        raise WeakPassword(" ".join(error.messages), field="password") from None
    try:
        with transaction.atomic():
            return User.objects.create_user(email, password, time_zone=time_zone)
    except IntegrityError:
        raise EmailTaken(
            "Someone has signed up with this e-mail address; log in, or reset the password.", field="email"
        ) from None


def user_lock(user: User) -> None:
    """Whoever else locks this person waits until the transaction ends, and then sees what it has done."""
    User.objects.select_for_update(no_key=True).get(pk=user.pk)


def user_set_invoice_address(*, user: User, invoice_address: str) -> User:
    """What the user's next invoices say under To; empty for the e-mail address. Raises InvalidAddress."""
    user.invoice_address = checked_address(invoice_address)
    user.save(update_fields=["invoice_address"])
    return user


@transaction.atomic
def user_set_time_zone(*, user: User, time_zone: str) -> User:
    """Move the wall clock that the user's idle windows are read on."""
    user.time_zone = checked_time_zone(time_zone)
    user.save(update_fields=["time_zone"])
    publish_device_news("changed", devices_of(user).values_list("id", flat=True))
    return user
